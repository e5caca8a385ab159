package submission

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Step is what only a job of a workflow has.
type Step struct {
	Name    string
	After   []string
	OnDeath job.OnDeath // empty for the default
}

// stepMembers are the members of a job of a workflow, besides those of any submission.
var stepMembers = []string{"name", "after", "onDeath"}

// foreignMembers are those of a submission that a job of a workflow cannot have.
var foreignMembers = map[string]string{
	"idempotencyKey": "is that of the whole workflow: set it there",
	"tenant":         "is that of the whole workflow: set it there",
	"uniqueFor":      "is not for jobs of a workflow: another job could not take its place",
	"uniqueWhile":    "is not for jobs of a workflow: another job could not take its place",
}

// workflowMembers are the members of a workflow.
var workflowMembers = []string{"name", "idempotencyKey", "tenant", "jobs", "onComplete"}

// Workflow is a workflow as a client sent it.
type Workflow struct {
	Name, IdempotencyKey, Tenant string
	Jobs                         []Item
	OnComplete                   *Item
	// Mistakes are those of the workflow itself, not those of its jobs.
	Mistakes []v1.Mistake
	// Problem says why the text cannot be read at all, and where; nil if it can.
	Problem *v1.Problem
}

// ParseWorkflow reads the workflow in a body. most limits the bytes of each job.
func ParseWorkflow(body []byte, most int) Workflow {
	p := workflowParser{parser: parser{scanner: scanner{text: body}, inWorkflow: true}, most: most, seen: make(map[string]bool)}
	if p.atEnd() {
		return Workflow{Problem: empty()}
	}
	if p.next() != '{' {
		p.refuseWhole("must be an object")
		if p.value() && p.atEnd() {
			return p.workflow
		}
		return Workflow{Problem: p.problem(1, len(body)-1)}
	}
	if !p.object(p.part) || !p.atEnd() {
		if p.tooLarge != nil {
			return Workflow{Problem: p.tooLarge}
		}
		return Workflow{Problem: p.problem(1, len(body)-1)}
	}
	if len(p.workflow.Jobs) == 0 && len(p.workflow.Mistakes) == 0 {
		p.refuseWhole("must have at least one job", "jobs")
	}
	return p.workflow
}

type workflowParser struct {
	parser

	workflow Workflow
	most     int
	seen     map[string]bool
	tooLarge *v1.Problem
}

func (p *workflowParser) refuseWhole(message string, place ...string) {
	if len(p.workflow.Mistakes) < MaxMistakes {
		p.workflow.Mistakes = append(p.workflow.Mistakes, v1.Mistake{Message: message, Location: Pointer(place...)})
	}
}

// part reads the value that follows the name of a member of the workflow.
func (p *workflowParser) part(quoted []byte) bool {
	name, err := text(quoted)
	switch {
	case err != nil:
		p.refuseWhole("cannot be read")
	case !slices.Contains(workflowMembers, name):
		p.refuseWhole("is not known", name)
	case p.seen[name]:
		p.refuseWhole("is duplicated", name)
	case name == "jobs" && p.next() == '[':
		p.seen[name] = true
		return p.array(p.job)
	case name == "onComplete" && p.next() == '{':
		p.seen[name] = true
		item, isJSON := p.one(false)
		p.workflow.OnComplete = &item
		return isJSON
	default:
		p.seen[name] = true
		begin := p.i
		if !p.value() {
			return false
		}
		if err := p.read(name, p.text[begin:p.i]); err != nil {
			p.refuseWhole(err.Error(), name)
		}
		return true
	}
	return p.value()
}

func (p *workflowParser) read(name string, v []byte) (err error) {
	if string(v) == "null" && name != "jobs" && name != "onComplete" {
		return nil
	}
	switch name {
	case "name":
		p.workflow.Name, err = checked(v, checkName)
	case "tenant":
		p.workflow.Tenant, err = checked(v, checkName)
	case "idempotencyKey":
		p.workflow.IdempotencyKey, err = checked(v, checkKey)
	case "jobs":
		err = errors.New("must be a list of jobs") // A list does not get here.
	case "onComplete":
		err = errors.New("must be a job")
	}
	return err
}

func (p *workflowParser) job() bool {
	if len(p.workflow.Jobs) == job.MaxWorkflowJobs {
		p.tooLarge = v1.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the workflow has more than %d jobs", job.MaxWorkflowJobs))
		return false
	}
	item, isJSON := p.one(true)
	p.workflow.Jobs = append(p.workflow.Jobs, item)
	return isJSON
}

// one reads a job. Only a step has a name and comes after others.
func (p *workflowParser) one(isStep bool) (Item, bool) {
	p.next()
	begin := p.i
	p.item, p.parser.seen, p.set, p.isStep, p.stepSeen = Item{}, 0, 0, isStep, 0
	if !p.submission() {
		return Item{}, false
	}
	if p.i-begin > p.most {
		p.tooLarge = tooLarge(p.most, positionOf(1, p.text[:begin]))
		return Item{}, false
	}
	return p.item, true
}

// stepMember reads a member that only jobs of a workflow have, or refuses one that they
// cannot have. It returns false if the member is of neither kind.
func (p *parser) stepMember(name string) (done, isJSON bool) {
	known := slices.Index(stepMembers, name)
	switch reason, foreign := foreignMembers[name]; {
	case p.inWorkflow && foreign:
		begin := p.i
		isJSON = p.value()
		if isJSON && string(p.text[begin:p.i]) != "null" {
			p.refuse(reason, name)
		}
		return true, isJSON
	case known < 0:
		return false, false
	case !p.inWorkflow:
		p.refuse("is for jobs of a workflow: send them to POST /workflows", name)
	case !p.isStep:
		p.refuse("is not for onComplete, which comes after all other jobs", name)
	case p.stepSeen&(1<<known) != 0:
		p.refuse("is duplicated", name)
	case name == "after" && p.next() == '[':
		p.stepSeen |= 1 << known
		p.item.Step.After, isJSON = p.list(name, job.MaxWorkflowJobs, checkName)
		return true, isJSON
	default:
		p.stepSeen |= 1 << known
		begin := p.i
		if !p.value() {
			return true, false
		}
		if err := p.item.Step.read(name, p.text[begin:p.i]); err != nil {
			p.refuse(err.Error(), name)
		}
		return true, true
	}
	return true, p.value()
}

func (s *Step) read(name string, v []byte) (err error) {
	if string(v) == "null" {
		return nil
	}
	switch name {
	case "name":
		s.Name, err = checked(v, checkName)
	case "after":
		err = errors.New("must be a list of names")
	case "onDeath":
		s.OnDeath, err = oneOf(v, job.OnDeaths()...)
	}
	return err
}

// Within makes locations in a value locations in what contains it.
func Within(mistakes []v1.Mistake, place ...string) []v1.Mistake {
	moved := make([]v1.Mistake, len(mistakes))
	for i, mistake := range mistakes {
		if inside, inBody := strings.CutPrefix(mistake.Location, "#"); inBody {
			mistake.Location = Pointer(place...) + inside
		}
		moved[i] = mistake
	}
	return moved
}
