package finding

import "strconv"

// Count words a number of things: "1 table lies", "2 tables lie".
func Count[N int | int64 | uint64 | uint32](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(uint64(n), 10) + " " + many
}
