package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func checkByHand(_ context.Context, k *kit) finding {
	p, err := fork(k.Options, false, k.id)
	if err != nil {
		return failed("it cannot be started: %v", err)
	}
	defer p.end()
	p.closeStdin()
	if !p.leaves(k.StartTimeout) {
		return failed("it still runs after %s%s", k.StartTimeout, p.out.said())
	}
	p.out.pumps.Wait()
	switch stdout, stderr := p.out.counts(); {
	case len(p.out.handshake) > 0:
		return failed("it printed a handshake line for somebody who is no orchestrator")
	case p.state.ExitCode() == 0:
		return failed("it ended with exit code 0")
	case stdout+stderr == 0:
		return failed("it ended with %s and said nothing", p.state)
	}
	return passed("%s", p.state)
}

func checkHandshake(ctx context.Context, k *kit) finding {
	begun := time.Now()
	return k.with(ctx, func(context.Context, *process, *session) finding {
		return passed("it was up after %s", time.Since(begun).Round(time.Millisecond))
	})
}

func checkManifest(ctx context.Context, k *kit) finding {
	return k.with(ctx, func(_ context.Context, p *process, _ *session) finding {
		m := p.manifest
		// Schemas have a check of their own.
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
		for _, sample := range []*Sample{&k.Work, &k.Slow, &k.Fail} {
			switch {
			case !sample.given():
			case sample.Type == "" && len(m.GetJobTypes()) == 1:
				sample.Type = m.GetJobTypes()[0].GetName()
			case sample.Type == "":
				return failed("it declares %s; name the one of each payload with --type, --slow-type, --fail-type", types)
			case k.declared(sample.Type) == nil:
				return failed("it declares %s, and not %s", types, sample.Type)
			}
		}
		return passed("version %s, %s", m.GetVersion(), types)
	})
}

// declared is what the manifest says of a type; nil when it has none.
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
			if sample.Type != declared.GetName() {
				continue
			}
			if wrong := compiled.Check(sample.Payload); len(wrong) > 0 {
				return failed("job type %s refuses the payload %.100s: %s", sample.Type, sample.Payload, describeViolation(wrong[0]))
			}
		}
		if misfit(compiled) == nil {
			return failed("the schema of job type %s takes anything; leave it out, or say what a payload is", declared.GetName())
		}
	}
	if checked == 0 {
		return skipped("no job type has a schema: payloads are not checked when jobs are submitted")
	}
	return passed("%d of %d job types have one", checked, len(k.manifest.GetJobTypes()))
}

func checkHealth(ctx context.Context, k *kit) finding {
	return k.with(ctx, func(ctx context.Context, p *process, _ *session) finding {
		if err := p.healthy(ctx, healthWithin); err != nil {
			return failed("%v", err)
		}
		return passed("SERVING")
	})
}

// describeViolation has the place, where there is one.
func describeViolation(v schema.Violation) string {
	if v.Pointer == "" {
		return "it " + v.Message
	}
	return v.Pointer + " " + v.Message
}

// misfit returns a payload that the schema refuses; nil when it takes all that
// are tried.
func misfit(s *schema.Schema) json.RawMessage {
	for _, payload := range []string{`"misfit"`, `[]`, `-1.5`, `{}`, `null`, `true`} {
		if len(s.Check([]byte(payload))) > 0 {
			return json.RawMessage(payload)
		}
	}
	return nil
}
