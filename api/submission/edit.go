package submission

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Edit is what to change about a job, as a client sent it.
type Edit struct {
	job.Edit
	// Mistakes are the values that cannot be accepted, at most MaxMistakes.
	Mistakes []v1.Mistake
	// Problem says why the text cannot be read at all, and where; nil if it can.
	Problem *v1.Problem
}

// now is the due time of a job that is to start at once.
const now = "now"

// ParseEdit reads a JSON Merge Patch (RFC 7396) of a job: members that are absent stay as
// they are, and null is the default.
func ParseEdit(text []byte) Edit {
	p := editParser{parser: parser{scanner: scanner{text: text}}, given: make(map[string]bool)}
	if p.atEnd() {
		return Edit{Problem: empty()}
	}
	if !p.object() || !p.atEnd() {
		return Edit{Problem: p.problem(1, len(text)-1)}
	}
	switch {
	case p.given["runAt"] && p.given["delay"]:
		p.refuse("excludes runAt", "delay")
	case len(p.given) == 0 && len(p.item.Mistakes) == 0:
		p.refuse("changes nothing; set priority, runAt, delay or tags")
	}
	return Edit{Edit: p.edit, Mistakes: p.item.Mistakes}
}

// editParser reads one edit.
type editParser struct {
	parser
	edit job.Edit
	// given are the members that occurred.
	given map[string]bool
}

// object passes over the patch, and reads it into the edit. It returns false for text that
// is not JSON.
func (p *editParser) object() bool {
	if p.next() != '{' {
		p.refuse("must be an object")
		return p.value()
	}
	return p.scanner.object(p.member)
}

// member reads the value that follows a name.
func (p *editParser) member(quoted []byte) bool {
	name, err := text(quoted)
	changeable := slices.Contains([]string{"priority", "runAt", "delay", "tags"}, name)
	begin := p.i
	switch {
	case err != nil:
		p.refuse("cannot be read")
	case !changeable && slices.Contains(members, name):
		p.refuse("cannot be changed", name)
	case !changeable:
		p.refuse("is not known", name)
	case p.given[name]:
		p.refuse("is duplicated", name)
	case name == "tags" && p.next() == '[':
		p.given[name] = true
		var isJSON bool
		p.edit.Tags, isJSON = p.list(name, maxTags, checkTag)
		return isJSON
	default:
		p.given[name] = true
		if !p.value() {
			return false
		}
		if err := p.read(name, p.text[begin:p.i]); err != nil {
			p.refuse(err.Error(), name)
		}
		return true
	}
	return p.value()
}

// read reads a member's value into the edit.
func (p *editParser) read(name string, v []byte) error {
	null := string(v) == "null"
	switch name {
	case "priority":
		priority := 0
		if !null {
			var err error
			if priority, err = number(v, minPriority, maxPriority); err != nil {
				return err
			}
		}
		p.edit.Priority = new(int16(priority)) //nolint:gosec // it is within the bounds
	case "tags":
		if !null {
			return errors.New("must be a list of strings")
		}
		p.edit.Tags = []string{}
	case "runAt", "delay":
		if null {
			return errors.New(`must not be null; for a job that is due now, runAt is "now"`)
		}
		return p.readDue(name, v)
	}
	return nil
}

func (p *editParser) readDue(name string, v []byte) (err error) {
	switch said, _ := text(v); {
	case name == "delay":
		delay, err := duration(v, 0, job.MaxPeriod)
		p.edit.Delay = &delay
		return err
	case said == now:
		p.edit.Delay = new(time.Duration(0))
	default:
		if p.edit.RunAt, err = instant(v); err != nil {
			return fmt.Errorf("%w, or %q", err, now)
		}
	}
	return nil
}
