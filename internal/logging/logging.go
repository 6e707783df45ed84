// Package logging is what operators read on standard error: warnings and worse as a rule, one line each.
//
// It stands on zap's core alone. Package zap itself can serve its level over HTTP, and brings a web server,
// TLS and the C library's resolver into every program that imports it: a third of the start of one that
// a hook runs for each push.
package logging

import (
	"io"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
)

// A Level says how bad an entry is.
type Level = zapcore.Level

// Warn is the level where nothing else is asked for.
const Warn = zapcore.WarnLevel

// ParseLevel reads debug, info, warn, error and so on.
func ParseLevel(word string) (Level, error) { return zapcore.ParseLevel(word) }

// A Field is a name and a value that belong to an entry.
type Field = zapcore.Field

// String is a field of text.
func String(name, value string) Field {
	return Field{Key: name, Type: zapcore.StringType, String: value}
}

// Strings is a field of several texts.
func Strings(name string, values []string) Field {
	return Field{Key: name, Type: zapcore.ArrayMarshalerType, Interface: texts(values)}
}

// Error is the field that says why.
func Error(err error) Field {
	return Field{Key: "error", Type: zapcore.ErrorType, Interface: err}
}

type texts []string

// MarshalLogArray is for zapcore.
func (t texts) MarshalLogArray(to zapcore.ArrayEncoder) error {
	for _, s := range t {
		to.AppendString(s)
	}
	return nil
}

// A Logger writes entries. It is safe for concurrent use, and costs nothing until it has one to write.
type Logger struct {
	level Level
	now   func() time.Time
	w     io.Writer
	once  sync.Once
	core  zapcore.Core
}

// New makes a logger of entries that are at least as bad as level.
func New(w io.Writer, level Level, now func() time.Time) *Logger {
	return &Logger{level: level, now: now, w: w}
}

// Discard makes a logger that writes nothing.
func Discard() *Logger { return New(io.Discard, zapcore.InvalidLevel, time.Now) }

// Debug writes what helps to find out why.
func (l *Logger) Debug(message string, fields ...Field) { l.write(zapcore.DebugLevel, message, fields) }

// Warn writes what an operator ought to know.
func (l *Logger) Warn(message string, fields ...Field) { l.write(zapcore.WarnLevel, message, fields) }

func (l *Logger) write(level Level, message string, fields []Field) {
	if level < l.level {
		return
	}
	l.once.Do(func() {
		l.core = zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
			TimeKey: "time", LevelKey: "level", MessageKey: "message", LineEnding: zapcore.DefaultLineEnding,
			EncodeTime: zapcore.RFC3339TimeEncoder, EncodeLevel: zapcore.LowercaseLevelEncoder,
		}), zapcore.Lock(zapcore.AddSync(l.w)), l.level)
	})
	// Nothing can be said of an error here: this is where it would be said.
	_ = l.core.Write(zapcore.Entry{Level: level, Time: l.now(), Message: message}, fields)
}
