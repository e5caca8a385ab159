package submission

import "github.com/holdfast-jobs/holdfast/runtime/job"

// ParseResubmission reads a JSON Merge Patch of a submission: what is to be different about
// a job that somebody submits anew. What is absent is taken from the original: its payload,
// priority, attempts, timeout, tags, terms and callback URL. When it was due, its idempotency
// key, and what kept others out were meant for the original alone. An empty text changes
// nothing.
func ParseResubmission(text []byte, original job.Submission) Item {
	p := parser{scanner: scanner{text: text}}
	if !p.atEnd() {
		if !p.resubmission() || !p.atEnd() {
			return Item{Problem: p.problem(1, len(text)-1)}
		}
	}
	p.inherit(original)
	return p.item
}

// resubmission passes over a value, and reads it into the item. It returns false for text
// that is not JSON.
func (p *parser) resubmission() bool {
	if p.next() != '{' {
		p.refuse("must be an object")
		return p.value()
	}
	if !p.object(p.member) {
		return false
	}
	for _, fixed := range []string{"jobType", "tenant"} {
		if has(p.seen, fixed) {
			p.refuse("cannot be changed", fixed)
		}
	}
	p.contradictions()
	return true
}

// inherit fills in the members that did not occur.
func (p *parser) inherit(original job.Submission) {
	item := &p.item
	item.Type, item.Tenant = original.Type, original.Tenant
	keyless := has(p.seen, "concurrencyKey") && item.Terms.ConcurrencyKey == ""
	for member, take := range map[string]func(){
		"payload":        func() { item.Payload = original.Payload },
		"priority":       func() { item.Priority = original.Priority },
		"maxAttempts":    func() { item.MaxAttempts = original.MaxAttempts },
		"timeout":        func() { item.Timeout = original.Timeout },
		"tags":           func() { item.Tags = original.Tags },
		"callbackUrl":    func() { item.CallbackURL = original.CallbackURL },
		"concurrencyKey": func() { item.Terms.ConcurrencyKey = original.Terms.ConcurrencyKey },
		"fairnessKey":    func() { item.Terms.FairnessKey = original.Terms.FairnessKey },
		"concurrencyLimit": func() {
			if !keyless {
				item.Terms.ConcurrencyLimit = original.Terms.ConcurrencyLimit
			}
		},
		"onConflict": func() {
			if !keyless {
				item.Terms.OnConflict = original.Terms.OnConflict
			}
		},
	} {
		if !has(p.seen, member) {
			take()
		}
	}
	if item.Tags == nil {
		item.Tags = []string{}
	}
}

// Own returns the terms that the job's own submission asked for: those that its type would
// not have filled in for its payload.
func Own(s job.Submission, declared *job.TypeTerms) job.Terms {
	filled := job.Submission{Type: s.Type, Payload: s.Payload}
	Complete(&filled, declared)
	own := s.Terms
	if own.FairnessKey == filled.Terms.FairnessKey {
		own.FairnessKey = ""
	}
	if own.ConcurrencyKey == filled.Terms.ConcurrencyKey {
		own.ConcurrencyKey = ""
	}
	if own.ConcurrencyLimit == filled.Terms.ConcurrencyLimit {
		own.ConcurrencyLimit = 0
	}
	if own.OnConflict == filled.Terms.OnConflict {
		own.OnConflict = ""
	}
	return own
}
