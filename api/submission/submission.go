// Package submission reads submissions: it converts the bytes of a body to a
// job.Submission, in one pass. It guarantees that the payload stays exactly as it was
// sent, that unknown and duplicated members are refused, that nesting is bounded, and
// that each mistake is reported with its place.
package submission

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// MaxMistakes bounds the mistakes that are listed for one submission.
	MaxMistakes = 20
	// maxEchoed limits, in characters, how much of an unknown member's name is repeated
	// in an answer.
	maxEchoed = 100
)

// Item is one submission, as a client sent it.
type Item struct {
	// Submission has no id, and zero for what the client left out: Tenant,
	// MaxAttempts and Timeout. Its payload shares memory with the body.
	job.Submission
	// UniqueBy are the members of the payload that must differ if the job is unique: the
	// whole payload if the client has left them out. Unique.Digest is not computed yet.
	UniqueBy []job.Pointer
	// Step is what only a job of a workflow has.
	Step Step
	// Mistakes are the values that cannot be accepted, at most MaxMistakes. Their
	// locations lie within the submission.
	Mistakes []v1.Mistake
	// Problem says why the text cannot be read at all, and where; nil if it can.
	Problem *v1.Problem
}

// Parse reads the submission in a text that begins on the given line of a body, counted
// from 1.
func Parse(text []byte, line int) Item {
	p := parser{scanner: scanner{text: text}}
	if p.atEnd() {
		return Item{Problem: empty()}
	}
	if !p.submission() || !p.atEnd() {
		return Item{Problem: p.problem(line, len(text)-1)}
	}
	return p.item
}

func empty() *v1.Problem { return unreadable("the body is empty") }

// parser reads one submission.
type parser struct {
	scanner
	item Item
	// seen has a bit for each member that occurred; set has one for each member that has
	// a value.
	seen, set int
	// inWorkflow says that the submission is part of a workflow, and isStep that it is one of
	// its jobs, not the one for onComplete. stepSeen is seen for stepMembers.
	inWorkflow, isStep bool
	stepSeen           int
}

// members are the members that a submission can have.
var members = []string{
	"jobType", "payload", "idempotencyKey", "priority", "runAt", "delay", "maxAttempts", "timeout", "tenant", "tags", "hold",
	"concurrencyKey", "concurrencyLimit", "onConflict", "fairnessKey", "expiresAt", "ttl", "uniqueFor", "uniqueWhile", "uniqueBy",
	"callbackUrl",
}

// submission passes over a value, and reads it into the item. It returns false for
// text that is not JSON.
func (p *parser) submission() bool {
	if p.next() != '{' {
		p.refuse("must be an object")
		return p.value()
	}
	if !p.object(p.member) {
		return false
	}
	if !has(p.seen, "jobType") {
		p.refuse("is required", "jobType")
	}
	p.contradictions()
	if p.item.Payload == nil {
		p.item.Payload = json.RawMessage("null")
	}
	if p.item.Tags == nil {
		p.item.Tags = []string{}
	}
	return true
}

// contradictory are the members that contradictions looks at.
var contradictory = bits("runAt", "delay", "expiresAt", "ttl", "uniqueFor", "uniqueWhile", "uniqueBy")

// contradictions refuses members that do not go together.
func (p *parser) contradictions() {
	if p.set&contradictory == 0 {
		return
	}
	given := func(member string) bool { return has(p.set, member) }
	for _, pair := range [...][2]string{{"runAt", "delay"}, {"expiresAt", "ttl"}, {"uniqueFor", "uniqueWhile"}} {
		if given(pair[0]) && given(pair[1]) {
			p.refuse("excludes "+pair[0], pair[1])
		}
	}
	if given("expiresAt") && given("runAt") && !p.item.ExpiresAt.After(p.item.RunAt) {
		p.refuse("must be after runAt", "expiresAt")
	}
	if given("ttl") && given("delay") && p.item.TTL <= p.item.Delay {
		p.refuse("must be longer than delay", "ttl")
	}
	if given("uniqueBy") && p.item.Unique == nil {
		p.refuse("needs uniqueFor or uniqueWhile", "uniqueBy")
	}
}

func has(set int, member string) bool { return set&bits(member) != 0 }

// bits is the set of these members.
func bits(names ...string) (set int) {
	for _, name := range names {
		set |= 1 << slices.Index(members, name)
	}
	return set
}

// member reads the value that follows a name.
func (p *parser) member(quoted []byte) bool {
	name, err := text(quoted)
	bit := 0
	if known := slices.Index(members, name); known >= 0 {
		bit = 1 << known
	}
	begin := p.i
	switch {
	case err != nil:
		p.refuse("cannot be read")
	case bit == 0 || p.inWorkflow && foreignMembers[name] != "":
		if done, isJSON := p.stepMember(name); done {
			return isJSON
		}
		p.refuse("is not known", name)
	case p.seen&bit != 0:
		p.refuse("is duplicated", name)
	case name == "tags" && p.next() == '[':
		p.seen |= bit
		var isJSON bool
		p.item.Tags, isJSON = p.list(name, maxTags, checkTag)
		return isJSON
	case name == "uniqueBy" && p.next() == '[':
		p.seen |= bit
		p.set |= bit
		return p.uniqueBy()
	default:
		p.seen |= bit
		if !p.value() {
			return false
		}
		isSet, err := read(&p.item, name, p.text[begin:p.i])
		switch {
		case err != nil:
			p.refuse(err.Error(), name)
		case isSet:
			p.set |= bit
		}
		return true
	}
	return p.value()
}

// uniqueBy reads a list of pointers.
func (p *parser) uniqueBy() bool {
	texts, isJSON := p.list("uniqueBy", job.MaxUniqueMembers, checkPointer)
	if len(texts) == 0 && isJSON {
		p.refuse("must not be empty; leave it out for the whole payload", "uniqueBy")
	}
	for _, text := range texts {
		pointer, _ := job.ParsePointer(text) // list has refused those that are none
		p.item.UniqueBy = append(p.item.UniqueBy, pointer)
	}
	return isJSON
}

// list reads a list of at most so many strings, which must pass a check. It refuses the
// first that does not.
func (p *parser) list(member string, most int, check func(string) error) (words []string, isJSON bool) {
	words = []string{}
	count, wrongAt, wrong := 0, 0, error(nil)
	isJSON = p.array(func() bool {
		begin := p.i
		if !p.value() {
			return false
		}
		if count++; count > most {
			return true
		}
		word, err := checked(p.text[begin:p.i], check)
		if err != nil && wrong == nil {
			wrongAt, wrong = count-1, err
		}
		words = append(words, word)
		return true
	})
	switch {
	case count > most:
		p.refuse("has more than "+strconv.Itoa(most)+" items", member)
	case wrong != nil:
		p.refuse(wrong.Error(), member, strconv.Itoa(wrongAt))
	}
	return words, isJSON
}

func (p *parser) refuse(message string, place ...string) {
	if len(p.item.Mistakes) < MaxMistakes {
		p.item.Mistakes = append(p.item.Mistakes, v1.Mistake{Message: message, Location: Pointer(place...)})
	}
}

// Pointer is the JSON Pointer to a place in a submission, as a URI fragment (RFC
// 6901, section 6).
func Pointer(place ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var path strings.Builder
	for _, step := range place {
		path.WriteString("/" + escape.Replace(Shortened(step)))
	}
	return "#" + (&url.URL{Fragment: path.String()}).EscapedFragment()
}

// Shortened cuts a name that a client sent, to repeat it in an answer.
func Shortened(name string) string {
	if runes := []rune(name); len(runes) > maxEchoed {
		return string(runes[:maxEchoed]) + "…"
	}
	return name
}
