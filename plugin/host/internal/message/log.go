package message

import (
	"bytes"
	"math"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLogText is how much of a log record's message is logged, in bytes, and how
// long its attributes may be.
const maxLogText = 16 << 10

// ReadLog takes what can be used of a record: logging is never a reason to end
// anything.
func ReadLog(record *handlerv1.Log) job.LogLine {
	line := job.LogLine{
		Level: job.LogInfo, Message: job.CleanText(record.GetMessage(), maxLogText),
		Dropped: int(min(record.GetDropped(), math.MaxInt32)),
	}
	line.Truncated = len(record.GetMessage()) > maxLogText
	switch record.GetLevel() {
	case handlerv1.Log_LEVEL_DEBUG:
		line.Level = job.LogDebug
	case handlerv1.Log_LEVEL_WARN:
		line.Level = job.LogWarn
	case handlerv1.Log_LEVEL_ERROR:
		line.Level = job.LogError
	case handlerv1.Log_LEVEL_INFO, handlerv1.Log_LEVEL_UNSPECIFIED:
	}
	if raw := record.GetAttributes(); len(raw) > maxLogText {
		line.Truncated = true
	} else if isObject(raw) {
		line.Attributes = raw
	}
	said, err := time.Parse(time.RFC3339Nano, record.GetTime())
	line.Time = said.UTC()
	if year := line.Time.Year(); err != nil || year < 1 || year > 9999 { // which JSON has no times of
		line.Time = time.Now().UTC()
	}
	return line
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && IsJSON(text)
}
