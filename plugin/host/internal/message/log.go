package message

import (
	"bytes"
	"math"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLogText bounds the message of a log record, and its attributes, in bytes.
const maxLogText = 16 << 10

// ReadLog translates the valid parts of a record. A bad log record never fails an
// attempt.
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
	sent, err := time.Parse(time.RFC3339Nano, record.GetTime())
	line.Time = sent.UTC()
	if year := line.Time.Year(); err != nil || year < 1 || year > 9999 { // JSON cannot express such a time.
		line.Time = time.Now().UTC()
	}
	return line
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && IsJSON(text)
}
