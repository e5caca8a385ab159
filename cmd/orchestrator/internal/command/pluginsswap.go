package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// swapPoll is how often to look at a swap that takes long.
const swapPoll = 500 * time.Millisecond

// swapPlugin starts a swap and waits for its end.
func (s *session) swapPlugin(ctx context.Context, name, action string, query url.Values) error {
	answer, err := s.beginSwap(ctx, name, action, query)
	if err != nil {
		return err
	}
	var swap v1.PluginSwap
	if err := answer.Into(&swap); err != nil {
		return err
	}
	if swap.Result == "" {
		s.notes.Print(goesOn(action) + "; you may interrupt this command, the swap goes on.\n")
		if answer, err = s.awaitSwap(ctx, name, swap.BegunAt); err == nil {
			err = answer.Into(&swap)
		}
		if err != nil {
			return err
		}
	}
	if err := present(s, answer, (*session).showSwap); err != nil {
		return err
	}
	if swap.Result != job.SwapPromoted {
		return Exit{CodeFound}
	}
	return nil
}

// goesOn says what takes time.
func goesOn(action string) string {
	if action == "restart" {
		return "Not all new processes are up"
	}
	return "The new version is starting or in its canary"
}

// beginSwap requests a swap until it begins. A request that waits too long behind
// another swap has no effect.
func (s *session) beginSwap(ctx context.Context, name, action string, query url.Values) (apiclient.Answer, error) {
	for told := false; ; told = true {
		answer, err := s.Post(ctx, apiclient.Path(pluginsPath, name, action), query, nil)
		var problem *apiclient.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable || problem.RetryAfter == 0 {
			return answer, err
		}
		if !told {
			s.notes.Print(show.Clean("Not started yet: "+problem.Detail) + ". This command tries again until you interrupt it.\n")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(problem.RetryAfter):
		}
	}
}

// awaitSwap waits for the end of the swap that began at begunAt.
func (s *session) awaitSwap(ctx context.Context, name string, begunAt time.Time) (apiclient.Answer, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(swapPoll):
		}
		answer, err := s.lastSwap(ctx, name)
		if err != nil {
			return nil, err
		}
		var swap v1.PluginSwap
		if err := answer.Into(&swap); err != nil {
			return nil, err
		}
		switch {
		case !swap.BegunAt.Equal(begunAt):
			return nil, fmt.Errorf("plugin %s: another swap began, or the orchestrator restarted, before the end of this one was seen", name)
		case swap.Result != "":
			return answer, nil
		}
	}
}

func (s *session) lastSwap(ctx context.Context, name string) (apiclient.Answer, error) {
	answer, err := s.Get(ctx, pluginsPath, nil)
	if err != nil {
		return nil, err
	}
	var found struct {
		Plugins []struct {
			Name     string
			LastSwap json.RawMessage
		}
	}
	if err := answer.Into(&found); err != nil {
		return nil, err
	}
	for _, plugin := range found.Plugins {
		if plugin.Name == name && plugin.LastSwap != nil {
			return apiclient.Answer(plugin.LastSwap), nil
		}
	}
	return apiclient.Answer("{}"), nil
}

func (s *session) showSwap(swap v1.PluginSwap) error {
	fields := show.NewFields(s.out)
	fields.Add("from", versionText(swap.From))
	fields.Add("to", versionText(swap.To))
	fields.Add("result", resultCell(swap.Result))
	fields.Add("reason", swap.Reason)
	if swap.Trial != nil {
		fields.Add("trial", trialText(*swap.Trial))
	}
	if swap.EndedAt != nil {
		fields.Add("took", show.Age(swap.EndedAt.Sub(swap.BegunAt)))
	}
	return fields.Flush()
}
