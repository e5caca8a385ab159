package bench

import (
	"bytes"
	"fmt"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Keys are the concurrency keys of the jobs: 0 for none, with a limit of each.
type Keys struct {
	Number, Limit int
}

// of returns what the job with a number, from 0, asks for.
func (k Keys) of(number int) job.Terms {
	if k.Number == 0 {
		return job.Terms{}
	}
	return job.Terms{ConcurrencyKey: fmt.Sprintf("key:%d", number%k.Number), ConcurrencyLimit: k.Limit}
}

func (k Keys) noop(number int) job.Submission {
	terms := k.of(number)
	return job.Submission{
		Type: noop, Tenant: job.DefaultTenant, Payload: []byte("null"),
		Terms: terms, Gates: (*job.Rules)(nil).Gates(noop, job.DefaultTenant, terms),
	}
}

// body renders a submission.
func (k Keys) body(jobType string, number int) string {
	switch terms := k.of(number); {
	case k.Number == 0:
		return fmt.Sprintf(`{"jobType":%q}`, jobType)
	case k.Limit == 0:
		return fmt.Sprintf(`{"jobType":%q,"concurrencyKey":%q}`, jobType, terms.ConcurrencyKey)
	default:
		return fmt.Sprintf(`{"jobType":%q,"concurrencyKey":%q,"concurrencyLimit":%d}`, jobType, terms.ConcurrencyKey, terms.ConcurrencyLimit)
	}
}

// singles renders submissions of one job each, one for each key.
func (k Keys) singles(address, jobType string) [][]byte {
	all := make([][]byte, max(k.Number, 1))
	for i := range all {
		all[i] = request(address, "POST", "/jobs", "application/json", []byte(k.body(jobType, i)))
	}
	return all
}

// batches renders batches of size jobs that together have all keys.
func (k Keys) batches(address, jobType string, size int) [][]byte {
	all := make([][]byte, (max(k.Number, 1)+size-1)/size)
	for i := range all {
		var lines bytes.Buffer
		for j := range size {
			lines.WriteString(k.body(jobType, i*size+j) + "\n")
		}
		all[i] = request(address, "POST", "/jobs/batch", "application/x-ndjson", lines.Bytes())
	}
	return all
}
