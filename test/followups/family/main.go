// Command family is a plugin whose jobs submit jobs.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// parent is the payload of a job that submits three children.
type parent struct {
	// Micros is how long the handler goes on after it has submitted them.
	Micros int `json:"micros,omitempty"`
	// FailFirst is how many attempts fail then. Permanent fails them for good.
	FailFirst int  `json:"failFirst,omitempty"`
	Permanent bool `json:"permanent,omitempty"`
	// Type and Child replace the type and the payload of the last child.
	Type  string `json:"type,omitempty"`
	Child any    `json:"child,omitempty"`
}

type child struct {
	Number int `json:"number" jsonschema:"minimum=1"`
}

func main() {
	plugin.Serve(plugin.Concurrency(50),
		plugin.Handle("PARENT", bear, plugin.Retry(plugin.ImmediateRetry())),
		plugin.Handle("CHILD", func(context.Context, plugin.Job[child]) error { return nil }))
}

func bear(ctx context.Context, j plugin.Job[parent]) error {
	var children []plugin.FollowUp
	for i := range 3 {
		children = append(children, plugin.FollowUp{Type: "CHILD", Payload: child{Number: i + 1}, Tags: []string{"child"}})
	}
	if j.Args.Type != "" {
		children[2].Type = j.Args.Type
	}
	if j.Args.Child != nil {
		children[2].Payload = j.Args.Child
	}
	if err := plugin.Submit(ctx, children...); err != nil {
		return err
	}
	time.Sleep(time.Duration(j.Args.Micros) * time.Microsecond)
	if j.Attempt <= j.Args.FailFirst {
		err := errors.New("failed after it has submitted")
		if j.Args.Permanent {
			return plugin.Permanent(err)
		}
		return err
	}
	return nil
}
