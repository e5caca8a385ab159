package main

import (
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// atLeastOnce is V8.
func atLeastOnce(r *record, f *findings) {
	r.ledger(func(line string, row history.Row) {
		if row["state"] != "succeeded" || !slices.Contains(r.run.Recorded, row["job_type"]) {
			return
		}
		f.look()
		fence, err1 := row.Int("fence")
		finished, err2 := row.Time("finished_at")
		did := r.handled[attempt{row["job_id"], fence}]
		switch {
		case err1 != nil || err2 != nil:
			f.add(row["job_id"], []string{line}, "the row cannot be read: %v %v", err1, err2)
		case did.done == nil:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d, but that attempt had no effect", fence)
		case did.ended == nil || did.ended.Report != history.Succeeds:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d, but that attempt did not report success", fence)
		case !strings.Contains(row["result"], did.ended.Says):
			f.add(row["job_id"], []string{line, did.ended.at}, "succeeded with the result %s, but that attempt returned that of %q", row["result"], did.ended.Says)
		case did.ended.At > finished+slack:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d before that attempt was done", fence)
		}
	})
	for _, e := range r.effects {
		if r.handled[attempt{e.JobID, e.Fence}].began == nil {
			f.add(e.JobID, []string{e.at}, "the attempt with the fence %d never began, but did something: %q", e.Fence, e.Event)
		}
	}
	r.ownPayload(f)
}

// ownPayload judges whether handlers got the payloads of the jobs that they were started for.
func (r *record) ownPayload(f *findings) {
	want := make(map[string]string)
	r.ledger(func(_ string, row history.Row) {
		mark := row.Mark()
		switch {
		case mark != "":
		case row["parent_id"] != "":
			mark = history.ChildMark(row["parent_id"])
		default:
			mark = history.TickMark
		}
		want[row["job_id"]] = mark
	})
	for _, e := range r.effects {
		f.look()
		if mark, ok := want[e.JobID]; ok && e.Mark != mark {
			f.add(e.JobID, []string{e.at}, "its handler got the payload of %q, and not of %q", e.Mark, mark)
		}
	}
}
