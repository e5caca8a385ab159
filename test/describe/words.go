package describe

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// vocabulary contains the sets of words that several types use. Each becomes one
// schema, and so one type for clients in typed languages.
var vocabulary = map[string]struct {
	words []any
	doc   string
}{
	"Status": {
		words: wordsOf(job.StatusPending, job.StatusRunning, job.StatusCompleted, job.StatusFailed, job.StatusCanceled),
		doc:   "The public status of a job. COMPLETED, FAILED and CANCELED are final, except that an operator can requeue a FAILED job.",
	},
	"State":   {words: wordsOf(job.States()...), doc: "The exact state of a job. Clients see created, queued and retry as PENDING."},
	"Outcome": {words: wordsOf(job.OutcomeKinds()...), doc: "How an attempt ended."},
	"OnConflict": {
		words: wordsOf(job.ConflictQueue, job.ConflictCancelNewcomer, job.ConflictCancelOldest),
		doc:   "What happens to a job when as many jobs of its concurrency key run as may: it waits, it is canceled, or the oldest is canceled and it takes its place.",
	},
	"Severity": {words: wordsOf(job.Fine, job.Warning, job.Problem), doc: "How severe a finding is."},
}

func wordsOf[W ~string](words ...W) []any {
	texts := make([]any, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}

// nameWords describes each set of words once, and replaces the others with references.
func (d describer) nameWords() {
	refer := func(schema *huma.Schema) {
		for name, set := range vocabulary {
			if schema != nil && slices.Equal(schema.Enum, set.words) {
				*schema = huma.Schema{Ref: "#/components/schemas/" + name, Description: schema.Description, Nullable: schema.Nullable}
			}
		}
	}
	schemas := d.Components.Schemas.Map()
	for _, schema := range schemas {
		for _, property := range schema.Properties {
			refer(property)
		}
	}
	d.eachOperation(func(operation *huma.Operation) {
		for _, parameter := range operation.Parameters {
			refer(parameter.Schema)
			refer(parameter.Schema.Items)
		}
	})
	for name, set := range vocabulary {
		schemas[name] = &huma.Schema{Type: huma.TypeString, Enum: set.words, Description: set.doc}
	}
}
