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
	// base is the address that a schema without an $id gets.
	base = "schema://payload/"
	// maxValues bounds the JSON values in a schema: compiling takes time that
	// grows with their square.
	maxValues = 10_000
	// maxPattern bounds a pattern, in bytes, and maxInstructions its compiled
	// program: the worst case is that many steps for each character. All patterns
	// of a schema together may have maxProgram instructions.
	maxPattern      = 4 << 10
	maxInstructions = 5_000
	maxProgram      = 100_000
)

// evaluator is a compiled schema. It runs one check at a time.
type evaluator struct {
	compiled *jsonschema.Schema
	meter    *meter
	// program is the number of instructions in its patterns.
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
	e := &evaluator{meter: new(meter)}
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
		return nil, explain(err)
	}
	return e, e.tryOut()
}

// count counts the values in a value, itself included.
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

// nowhere loads no schemas from outside. The library's default reads files.
type nowhere struct{}

var errOutside = errors.New("refers to something outside of the schema")

func (nowhere) Load(string) (any, error) { return nil, errOutside }

// compilePattern compiles a pattern with Go's regexp, whose time is linear in the text.
// It bounds the factor and the memory.
func (e *evaluator) compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("%d bytes are more than %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if e.compiled == nil { // Later it is a payload's, for the format "regex".
		e.program += len(program.Inst)
	}
	e.meter.charge(len(program.Inst) / compiledInStep)
	if len(program.Inst) > maxInstructions || e.program > maxProgram {
		return nil, errors.New("it takes too many steps")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, instructions: len(program.Inst), meter: e.meter}, nil
}

// tryOut finds schemas that refer to themselves without a step into the value, and so
// would refuse everything.
func (e *evaluator) tryOut() error {
	for _, value := range []any{nil, true, json.Number("0"), "", []any{}, map[string]any{}} {
		if f, _ := e.evaluate(value, fewestSteps); f.endless {
			return errors.New("it refers to itself without end")
		}
	}
	return nil
}

// evaluate checks a value within a number of steps; done is false if they are too few.
func (e *evaluator) evaluate(value any, steps int) (f findings, done bool) {
	*e.meter = meter{limit: steps}
	defer func() {
		switch problem := recover(); problem {
		case nil:
		case errOutOfSteps:
			f, done = findings{}, false
		default:
			panic(problem)
		}
	}()
	var refused *jsonschema.ValidationError
	if errors.As(e.compiled.Validate(value), &refused) {
		restore(refused)
		f.collect(refused)
	}
	return f, true
}

// observe makes every evaluation of a schema count as steps. It does so in the format,
// which the library checks before it goes deeper. It also takes over these keywords:
// type, which the library checks even before the format, and ten times more slowly for
// integers; const, enum and uniqueItems, which are expensive in the library; and
// propertyNames, for which the library reports wrong places.
func (e *evaluator) observe(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
	current := ctx.Enqueue(nil)
	current.Format = e.counting(current)
	var taken extensions
	if current.UniqueItems {
		current.UniqueItems = false
		taken = append(taken, uniqueItems{e.meter})
	}
	if current.PropertyNames != nil {
		taken = append(taken, &memberNames{schema: current.PropertyNames})
		current.PropertyNames = nil
	}
	if taken == nil {
		return nil, nil
	}
	return taken, nil
}

// extensions are keywords that this package checks in place of the library.
type extensions []jsonschema.SchemaExt

func (all extensions) Validate(ctx *jsonschema.ValidatorContext, value any) {
	for _, keyword := range all {
		keyword.Validate(ctx, value)
	}
}

func (e *evaluator) counting(of *jsonschema.Schema) *jsonschema.Format {
	counted := jsonschema.Format{Validate: func(any) error { return nil }}
	if of.Format != nil {
		counted = *of.Format
	}
	var wanted []string
	if of.Types != nil && !of.Types.IsEmpty() {
		wanted = of.Types.ToStrings()
		of.Types = nil
	}
	var lists []*listed
	if of.Const != nil {
		lists = append(lists, newListed([]any{*of.Const}))
		of.Const = nil
	}
	if of.Enum != nil {
		lists = append(lists, newListed(of.Enum.Values))
		of.Enum = nil
	}
	fixed := 1 + len(of.Required)/passedForStep
	ofObject := (len(of.DependentSchemas) + len(of.DependentRequired) + len(of.Dependencies)) / passedForStep
	reads := of.Format != nil || of.MinLength != nil || of.MaxLength != nil || lists != nil
	check := counted.Validate
	counted.Validate = func(value any) error {
		steps := fixed + members(value)/passedForStep
		switch value := value.(type) {
		case string:
			if reads {
				steps += len(value) / readInStep
			}
		case map[string]any:
			steps += ofObject
		}
		e.meter.charge(steps)
		if wanted != nil && !isOneOf(value, wanted) {
			return &unlistedError{&kind.Type{Want: wanted}}
		}
		for _, list := range lists {
			if !list.has(value, e.meter) {
				return &unlistedError{&kind.Enum{Want: list.values}}
			}
		}
		return check(value)
	}
	return &counted
}

// members counts the direct members or items of a value.
func members(value any) int {
	switch value := value.(type) {
	case []any:
		return len(value)
	case map[string]any:
		return len(value)
	}
	return 0
}

// memberNames is the keyword propertyNames.
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
