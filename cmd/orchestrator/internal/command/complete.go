package command

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// completeWithin bounds how long a shell waits after the tab key.
const completeWithin = time.Second

// proposals is how many jobs to propose.
const proposals = "20"

// complete says how the values of a flag are completed.
func complete(c *cobra.Command, flag string, how cobra.CompletionFunc) {
	// It fails only for an unknown flag or one that has a completion; a test walks all
	// commands.
	_ = c.RegisterFlagCompletionFunc(flag, how)
}

func nothing(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func fixed(values ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// files are the flags whose values may be names of files.
var files = []string{"payload", "batch", "cells"}

// completeAll completes arguments by their names in the usage, and flags: --type by
// the types that the API knows, and those without a completion by nothing, unless they
// may name a file.
func (p *Program) completeAll(c *cobra.Command, o *options) {
	types := p.ask(o, jobTypes)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch _, done := c.GetFlagCompletionFunc(f.Name); {
		case f.Name == "type":
			complete(c, f.Name, types)
		case !done && !slices.Contains(files, f.Name):
			complete(c, f.Name, nothing)
		}
	})
	names := strings.Fields(c.Use)[1:]
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := len(args)
		if len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…") {
			at = min(at, len(names)-1)
		}
		if at >= len(names) {
			return nothing(c, args, begun)
		}
		switch strings.Trim(names[at], "[]…") {
		case "TYPE":
			return types(c, args, begun)
		case "ID":
			return p.ask(o, jobIDs(c.Name()))(c, args, begun)
		case "NAME":
			return p.ask(o, pluginNames)(c, args, begun)
		}
		return nothing(c, args, begun)
	}
}

// ask returns a completion that asks the API. It proposes nothing if there is no answer
// in time.
func (p *Program) ask(o *options, question func(context.Context, *apiclient.Client) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		target := o.target()
		target.Hasty = true
		// For completions, cobra parses flags twice, and adds what is repeatable again.
		named := target.Servers
		target.Servers = nil
		for _, server := range named {
			if !slices.Contains(target.Servers, server) {
				target.Servers = append(target.Servers, server)
			}
		}
		api, closeAPI, err := p.Connect(ctx, target)
		if err != nil {
			return nothing(c, args, begun)
		}
		defer closeAPI()
		answers, err := question(ctx, api)
		if err != nil {
			return nothing(c, args, begun)
		}
		return answers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func jobTypes(ctx context.Context, api *apiclient.Client) ([]cobra.Completion, error) {
	answer, err := api.Get(ctx, "/job-types", nil)
	if err != nil {
		return nil, err
	}
	var found v1.JobTypeList
	if err := answer.Into(&found); err != nil {
		return nil, err
	}
	var names []cobra.Completion
	for _, t := range found.JobTypes {
		names = append(names, show.Clean(t.JobType))
	}
	return names, nil
}

func pluginNames(ctx context.Context, api *apiclient.Client) ([]cobra.Completion, error) {
	answer, err := api.Get(ctx, pluginsPath, nil)
	if err != nil {
		return nil, err
	}
	var found v1.PluginList
	if err := answer.Into(&found); err != nil {
		return nil, err
	}
	var names []cobra.Completion
	for _, plugin := range found.Plugins {
		names = append(names, cobra.CompletionWithDesc(show.Clean(plugin.Name), show.Clean(string(plugin.State))))
	}
	return names, nil
}

// jobIDs proposes the newest jobs that the command applies to.
func jobIDs(command string) func(context.Context, *apiclient.Client) ([]cobra.Completion, error) {
	query := url.Values{"limit": {proposals}}
	for _, a := range []action{cancel, hold, release, requeue} {
		if a.name == command {
			query.Set("status", a.statuses)
		}
	}
	return func(ctx context.Context, api *apiclient.Client) ([]cobra.Completion, error) {
		answer, err := api.Get(ctx, "/jobs", query)
		if err != nil {
			return nil, err
		}
		var found struct{ Jobs []v1.Job }
		if err := answer.Into(&found); err != nil {
			return nil, err
		}
		var ids []cobra.Completion
		for _, job := range found.Jobs {
			ids = append(ids, cobra.CompletionWithDesc(job.JobID.String(), show.Clean(job.JobType+" "+string(job.Status))))
		}
		return ids, nil
	}
}
