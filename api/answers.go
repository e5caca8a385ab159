package api

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// answers writes answers, each as JSON on a line of its own.
type answers struct {
	*json.Encoder
	out  io.Writer
	line []byte
}

func newAnswers(out io.Writer) *answers { return &answers{Encoder: newEncoder(out), out: out} }

// result writes the answer to one submission of a batch. A batch has thousands that say that a
// job was accepted, so these are put together here, for a fraction of what the encoder takes.
func (a *answers) result(r *v1.BatchResult) error {
	if r.Job == nil || r.Problem != nil || !needsNoEscape(r.Job.JobType) {
		return a.Encode(r)
	}
	a.line = append(appendAccepted(a.line[:0], r.Index, r.Job), '\n')
	_, err := a.out.Write(a.line)
	return err
}

// appendAccepted appends what the encoder would make of a BatchResult. The job type must need no escape.
func appendAccepted(line []byte, index int, job *v1.Accepted) []byte {
	line = append(line, `{"index":`...)
	line = strconv.AppendInt(line, int64(index), 10)
	line = append(line, `,"job":{"jobId":"`...)
	line, _ = job.JobID.AppendText(line) // which never fails
	line = append(line, `","jobType":"`...)
	line = append(line, job.JobType...)
	line = append(line, `","status":"`...)
	line = append(line, job.Status...)
	line = append(line, `","createdAt":"`...)
	line = job.CreatedAt.AppendFormat(line, time.RFC3339Nano)
	line = append(line, `","updatedAt":"`...)
	line = job.UpdatedAt.AppendFormat(line, time.RFC3339Nano)
	line = append(line, '"')
	if job.Duplicate {
		line = append(line, `,"duplicate":true`...)
	}
	return append(line, "}}"...)
}

// needsNoEscape reports whether the text stays as it is in JSON: printable ASCII that nothing escapes.
func needsNoEscape(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
