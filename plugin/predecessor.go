package plugin

import (
	"context"
	"encoding/json"
	"fmt"
)

// Predecessor is a job of the same workflow that had to end before this one could start.
type Predecessor struct {
	// Name is its name in the workflow.
	Name string
	ID   string
	// Succeeded is false if it was skipped or canceled.
	Succeeded bool
	// Result is its result as JSON; nil if it has none.
	Result json.RawMessage
	// Omitted says that it has a result, which the orchestrator has left out because all
	// results together are too large. GET /jobs/{id} has it.
	Omitted bool
}

// Predecessors returns the jobs that the current one comes after, in the order of `after`:
// for the job for onComplete, all others of its workflow. It is nil for a job that belongs to
// no workflow, and outside of a handler.
func Predecessors(ctx context.Context) []Predecessor {
	a := current(ctx)
	if a == nil {
		return nil
	}
	var before []Predecessor
	for _, p := range a.start.GetPredecessors() {
		before = append(before, Predecessor{
			Name: p.GetName(), ID: p.GetJobId(), Succeeded: p.GetSucceeded(), Result: p.GetResult(), Omitted: p.GetOmitted(),
		})
	}
	return before
}

// ResultOf decodes the result of the predecessor with the name into v. It returns false, and
// leaves v unchanged, if the predecessor has none, or was skipped or canceled. It fails if
// there is no such predecessor, if its result does not fit v, or if the orchestrator has left
// the result out: these errors are Permanent, with the codes unknown_predecessor,
// bad_predecessor_result and result_omitted.
func ResultOf(ctx context.Context, name string, v any) (bool, error) {
	for _, p := range Predecessors(ctx) {
		if p.Name != name {
			continue
		}
		switch {
		case p.Omitted:
			return false, Code(Permanent(fmt.Errorf("the result of %s was left out: all results together are too large", name)), codeResultOmitted)
		case !p.Succeeded || len(p.Result) == 0:
			return false, nil
		}
		if err := json.Unmarshal(p.Result, v); err != nil {
			return false, Code(Permanent(fmt.Errorf("result of %s: %w", name, err)), codeBadPredecessorResult)
		}
		return true, nil
	}
	return false, Code(Permanent(fmt.Errorf("no job before this one has the name %q", name)), codeUnknownPredecessor)
}
