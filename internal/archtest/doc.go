// Package archtest holds which of our packages may use which, as tables: each other, the modules
// of others, the parts of the standard library that reach outside, and the functions that write.
// Its tests read the source of every file for every system and hold it against the tables.
//
// A new arrow is a new word in a row of table_test.go, and the row says why.
package archtest
