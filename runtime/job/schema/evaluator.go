package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	// base is where a schema without an $id seems to come from.
	base = "schema://payload/"
	// maxValues bounds the JSON values in a schema: compiling takes time that
	// grows with their square.
	maxValues = 10_000
	// maxPattern bounds a pattern, in bytes, and maxInstructions what it is
	// compiled to: so many steps are done for each character at worst. All
	// patterns of a schema may have maxProgram instructions.
	maxPattern      = 4 << 10
	maxInstructions = 5_000
	maxProgram      = 100_000
	// How many steps a check may take: some for each value in the payload,
	// within bounds. A schema that refers to itself in several alternatives
	// could make their number exponential in the depth of the payload. A step
	// takes about a microsecond.
	stepsForValue = 50
	fewestSteps   = 20_000
	mostSteps     = 2_000_000
)

// evaluator is a compiled schema that serves one check at a time.
type evaluator struct {
	compiled *jsonschema.Schema
	// left is how many steps the check may still take.
	left int
	// program is how many instructions its patterns have.
	program int
}

func newEvaluator(text json.RawMessage) (*evaluator, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%d bytes are more than %d", len(text), MaxBytes)
	}
	document, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	switch document.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("it is neither an object nor a boolean")
	}
	if n := count(document); n > maxValues {
		return nil, fmt.Errorf("it holds %d values, more than %d", n, maxValues)
	}
	e := new(evaluator)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(nowhere{})
	compiler.UseRegexpEngine(e.compilePattern)
	compiler.RegisterVocabulary(&jsonschema.Vocabulary{URL: "urn:holdfast:step", Compile: e.observe})
	compiler.AssertVocabs()
	if err := compiler.AddResource(base, document); err != nil {
		return nil, err
	}
	if e.compiled, err = compiler.Compile(base); err != nil {
		return nil, explain(err, document)
	}
	return e, e.tryOut()
}

// count returns how many values there are in a value, itself included.
func count(value any) int {
	n := 1
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			n += count(item)
		}
	case map[string]any:
		for _, member := range value {
			n += count(member)
		}
	}
	return n
}

// nowhere is where schemas from outside are loaded from. Without it the
// library reads files.
type nowhere struct{}

var errOutside = errors.New("refers to something outside of the schema")

func (nowhere) Load(string) (any, error) { return nil, errOutside }

// compilePattern is the library's own, in Go's regexp, whose time is linear in
// the text, with bounds on the factor and on the memory.
func (e *evaluator) compilePattern(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("%d bytes are more than %d", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	e.program += len(program.Inst)
	if len(program.Inst) > maxInstructions || e.program > maxProgram {
		return nil, errors.New("it takes too many steps")
	}
	return regexp.Compile(pattern)
}

// tryOut finds schemas that refer to themselves at once, without a step into
// the value, and so would refuse everything.
func (e *evaluator) tryOut() error {
	for _, value := range []any{nil, true, json.Number("0"), "", []any{}, map[string]any{}} {
		if e.evaluate(value).endless {
			return errors.New("it refers to itself without end")
		}
	}
	return nil
}

// errTooIntricate is what a check panics with that takes too many steps: the
// library has no other way to be stopped.
var errTooIntricate = errors.New("is too intricate to be checked against the schema of the job type")

func (e *evaluator) evaluate(value any) (f findings) {
	e.left = max(fewestSteps, min(stepsForValue*count(value), mostSteps))
	defer func() {
		switch problem := recover(); problem {
		case nil:
		case errTooIntricate:
			f = findings{found: []finding{{message: errTooIntricate.Error()}}}
		default:
			panic(problem)
		}
	}()
	var refused *jsonschema.ValidationError
	if errors.As(e.compiled.Validate(value), &refused) {
		f.collect(refused)
	}
	return f
}

// observe has every evaluation of a schema counted, by way of its format: that
// is what the library calls before it goes deeper. It also takes over
// propertyNames, for which the library reports wrong places.
func (e *evaluator) observe(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
	current := ctx.Enqueue(nil)
	current.Format = e.counting(current.Format)
	if current.PropertyNames == nil {
		return nil, nil
	}
	names := &memberNames{schema: current.PropertyNames}
	current.PropertyNames = nil
	return names, nil
}

func (e *evaluator) counting(format *jsonschema.Format) *jsonschema.Format {
	counted := jsonschema.Format{Validate: func(any) error { return nil }}
	if format != nil {
		counted = *format
	}
	check := counted.Validate
	counted.Validate = func(value any) error {
		if e.left--; e.left < 0 {
			panic(errTooIntricate)
		}
		return check(value)
	}
	return &counted
}

// memberNames checks the names of an object's members.
type memberNames struct{ schema *jsonschema.Schema }

func (m *memberNames) Validate(ctx *jsonschema.ValidatorContext, value any) {
	members, _ := value.(map[string]any)
	for name := range members {
		var refused *jsonschema.ValidationError
		if errors.As(ctx.Validate(m.schema, name, []string{name}), &refused) {
			ctx.AddErrors([]*jsonschema.ValidationError{refused}, &kind.PropertyNames{Property: name})
		}
	}
}
