package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func checkByHand(ctx context.Context, k *kit) finding {
	p, err := k.fork(false)
	if err != nil {
		return failed("%v", err)
	}
	defer context.AfterFunc(ctx, p.kill)()
	defer p.end()
	p.closeStdin()
	if !p.leaves(k.StartTimeout) {
		return failed("it still runs after %s%s", k.StartTimeout, p.out.said())
	}
	switch stdout, stderr := p.out.counts(); {
	case len(p.out.handshake) > 0:
		return failed("it printed a handshake without the cookie of an orchestrator")
	case p.state.ExitCode() == 0:
		return failed("it ended with exit code 0")
	case stdout+stderr == 0:
		return failed("it ended with %s and printed nothing", p.state)
	}
	return passed("%s", p.state)
}

func checkHandshake(_ context.Context, _ *kit, s *session) finding {
	return passed("it was up after %s", time.Since(s.process.begun).Round(time.Millisecond))
}

func checkManifest(_ context.Context, k *kit, s *session) finding {
	m := s.process.manifest
	// Another check is for schemas.
	bare, _ := proto.Clone(m).(*handlerv1.DescribeResponse)
	for _, declared := range bare.GetJobTypes() {
		declared.Schema = nil
	}
	if err := host.CheckManifest(bare); err != nil {
		return failed("%v", err)
	}
	k.manifest = m
	types := fmt.Sprintf("%d job types", len(m.GetJobTypes()))
	if len(m.GetJobTypes()) == 1 {
		types = "job type " + m.GetJobTypes()[0].GetName()
	}
	k.hopeless = k.matchSamples()
	return passed("version %s, %s", m.GetVersion(), types)
}

// matchSamples gives each sample its type and checks its payload by the schema.
func (k *kit) matchSamples() error {
	served := k.manifest.GetJobTypes()
	var names []string
	for _, declared := range served {
		names = append(names, declared.GetName())
	}
	for _, s := range []struct {
		*Sample
		flag string
	}{{&k.Work, ""}, {&k.Slow, "slow-"}, {&k.Fail, "fail-"}} {
		if !s.given() {
			continue
		}
		if s.Type == "" && len(served) == 1 {
			s.Type = names[0]
		}
		declared := k.declared(s.Type)
		switch {
		case s.Type == "":
			return OptionsError{fmt.Sprintf("--%stype is missing: the binary serves %s", s.flag, strings.Join(names, ", "))}
		case declared == nil:
			return OptionsError{fmt.Sprintf("--%stype %s: the binary serves %s", s.flag, s.Type, strings.Join(names, ", "))}
		case s.Sample == &k.Fail: // that may be why it fails
			continue
		}
		if s.refused = refusal(declared, s.Payload); s.refused != "" && !k.schemas {
			return fmt.Errorf("--%spayload: %s", s.flag, s.refused)
		}
	}
	return nil
}

// refusal is why a job of the type with the payload could not be submitted; empty
// if it could.
func refusal(declared *handlerv1.JobType, payload json.RawMessage) string {
	compiled := schemaOf(declared)
	if compiled == nil {
		return ""
	}
	if wrong := compiled.Check(payload); len(wrong) > 0 {
		return fmt.Sprintf("job type %s refuses the payload %.100s: %s", declared.GetName(), payload, describeViolation(wrong[0]))
	}
	return ""
}

// schemaOf is the type's schema; nil if it has none, or one that is not valid.
func schemaOf(declared *handlerv1.JobType) *schema.Schema {
	if compiled, err := schema.Compile(declared.GetSchema()); err == nil {
		return compiled
	}
	return nil
}

// declared is the type in the manifest; nil for a type that is not there.
func (k *kit) declared(jobType string) *handlerv1.JobType {
	for _, declared := range k.manifest.GetJobTypes() {
		if declared.GetName() == jobType {
			return declared
		}
	}
	return nil
}

func checkSchema(_ context.Context, k *kit) finding {
	checked := 0
	for _, declared := range k.manifest.GetJobTypes() {
		if len(declared.GetSchema()) == 0 {
			continue
		}
		compiled, err := schema.Compile(declared.GetSchema())
		if err != nil {
			return failed("job type %s: %v", declared.GetName(), err)
		}
		checked++
		for _, sample := range []Sample{k.Work, k.Slow} {
			if sample.Type == declared.GetName() && sample.refused != "" {
				return failed("%s", sample.refused)
			}
		}
		if misfit(compiled) == nil {
			return failed("the schema of job type %s accepts anything; leave it out, or describe the payload", declared.GetName())
		}
	}
	if checked == 0 {
		return skipped("no job type has a schema: payloads are not checked when jobs are submitted")
	}
	return passed("%d of %d job types have one", checked, len(k.manifest.GetJobTypes()))
}

func checkHealth(ctx context.Context, _ *kit, s *session) finding {
	if err := s.process.healthy(ctx, healthWithin); err != nil {
		return failed("%v", err)
	}
	return passed("SERVING")
}

// describeViolation says where, unless it is the whole payload.
func describeViolation(v schema.Violation) string {
	if v.Pointer == "" {
		return "it " + v.Message
	}
	return v.Pointer + " " + v.Message
}

// misfit returns a payload that the schema refuses; nil if it accepts all that are
// tried, or is nil.
func misfit(s *schema.Schema) json.RawMessage {
	if s == nil {
		return nil
	}
	for _, payload := range []string{`"misfit"`, `[]`, `-1.5`, `{}`, `null`, `true`} {
		if len(s.Check([]byte(payload))) > 0 {
			return json.RawMessage(payload)
		}
	}
	return nil
}
