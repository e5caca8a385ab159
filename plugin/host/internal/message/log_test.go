package message

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheValidPartsOfALogRecordAreKept(t *testing.T) {
	const at = "2026-02-20T10:30:00.5+01:00"
	noon := time.Date(2026, 2, 20, 9, 30, 0, 500_000_000, time.UTC)
	long := strings.Repeat("x", maxLogText+1)
	for name, c := range map[string]struct {
		sent *handlerv1.Log
		line job.LogLine
	}{
		"bare":         {&handlerv1.Log{Time: at}, job.LogLine{Level: job.LogInfo}},
		"debug":        {&handlerv1.Log{Time: at, Level: handlerv1.Log_LEVEL_DEBUG}, job.LogLine{Level: job.LogDebug}},
		"info":         {&handlerv1.Log{Time: at, Level: handlerv1.Log_LEVEL_INFO}, job.LogLine{Level: job.LogInfo}},
		"warn":         {&handlerv1.Log{Time: at, Level: handlerv1.Log_LEVEL_WARN}, job.LogLine{Level: job.LogWarn}},
		"error":        {&handlerv1.Log{Time: at, Level: handlerv1.Log_LEVEL_ERROR}, job.LogLine{Level: job.LogError}},
		"to come":      {&handlerv1.Log{Time: at, Level: 99}, job.LogLine{Level: job.LogInfo}},
		"text":         {&handlerv1.Log{Time: at, Message: "a\x00\x1b[2J"}, job.LogLine{Level: job.LogInfo, Message: "a\uFFFD\x1b[2J"}},
		"long":         {&handlerv1.Log{Time: at, Message: long}, job.LogLine{Level: job.LogInfo, Message: long[1:], Truncated: true}},
		"attributes":   {&handlerv1.Log{Time: at, Attributes: []byte(` {"a":1}`)}, job.LogLine{Level: job.LogInfo, Attributes: []byte(` {"a":1}`)}},
		"no object":    {&handlerv1.Log{Time: at, Attributes: []byte(`[1]`)}, job.LogLine{Level: job.LogInfo}},
		"null":         {&handlerv1.Log{Time: at, Attributes: []byte(`null`)}, job.LogLine{Level: job.LogInfo}},
		"no JSON":      {&handlerv1.Log{Time: at, Attributes: []byte(`{"a":`)}, job.LogLine{Level: job.LogInfo}},
		"no UTF-8":     {&handlerv1.Log{Time: at, Attributes: []byte("{\"\xff\":1}")}, job.LogLine{Level: job.LogInfo}},
		"much":         {&handlerv1.Log{Time: at, Attributes: []byte(`{"a":"` + long + `"}`)}, job.LogLine{Level: job.LogInfo, Truncated: true}},
		"dropped":      {&handlerv1.Log{Time: at, Dropped: 3}, job.LogLine{Level: job.LogInfo, Dropped: 3}},
		"dropped many": {&handlerv1.Log{Time: at, Dropped: 1 << 63}, job.LogLine{Level: job.LogInfo, Dropped: 1<<31 - 1}},
	} {
		c.line.Time = noon
		require.Equal(t, c.line, ReadLog(c.sent), name)
	}
	for _, never := range []string{"", "today", "9999-12-31T23:59:59-23:00", "0000-01-01T00:00:00+23:00"} {
		require.WithinDuration(t, time.Now(), ReadLog(&handlerv1.Log{Time: never}).Time, time.Minute, never)
	}
}
