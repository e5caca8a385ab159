package plugintest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
)

// Args is the payload of a PRINT job.
type Args struct {
	To    string `json:"to"`
	Pages int    `json:"pages"`
}

// Receipt is its result.
type Receipt struct {
	Printed int `json:"printed"`
}

// minuteOfPage is how long a page takes.
const minuteOfPage = time.Minute

// Print is a handler as its author writes it, with everything that there is to
// test.
func Print(ctx context.Context, j plugin.Job[Args]) (Receipt, error) {
	if j.Args.To == "nowhere" {
		return Receipt{}, plugin.Permanent(plugin.Code(errors.New("no such printer"), "no_printer"))
	}
	page := 0
	if _, err := j.Resume(&page); err != nil {
		return Receipt{}, err
	}
	for ; page < j.Args.Pages; page++ {
		select {
		case <-time.After(minuteOfPage):
		case <-ctx.Done():
			return Receipt{}, context.Cause(ctx)
		}
		plugin.Logger(ctx).Info("printed", "page", page+1)
		if err := errors.Join(j.Checkpoint(page+1), j.Progress(page+1)); err != nil {
			return Receipt{}, err
		}
	}
	return Receipt{Printed: page}, nil
}

// The tests below are what the author of Print would write.

func TestPrintPrints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.HandleResult("PRINT", Print, plugin.Timeout(time.Hour)))
		result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "second floor", Pages: 3}})
		if result.Outcome != plugintest.Succeeded || string(result.Result) != `{"printed":3}` {
			t.Fatal(result)
		}
		if result.Took != 3*minuteOfPage || len(result.Logs) != 3 || string(result.Progress) != "3" {
			t.Fatalf("%+v", result)
		}
	})
}

func TestPrintKnowsItsPrinters(t *testing.T) {
	h := plugintest.Start(t, plugin.HandleResult("PRINT", Print))
	result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "nowhere"}})
	if result.Outcome != plugintest.Permanent || result.Code != "no_printer" {
		t.Fatal(result)
	}
}

func TestPrintGoesOnWhereItsLastAttemptEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.HandleResult("PRINT", Print, plugin.Timeout(150*time.Second)))
		job := plugintest.Job{Payload: Args{Pages: 3}}
		first := h.Run(t.Context(), job)
		if first.Outcome != plugintest.TimedOut || string(first.Checkpoint) != "2" {
			t.Fatal(first)
		}
		job.Attempt, job.Checkpoint = 2, first.Checkpoint
		second := h.Run(t.Context(), job)
		if second.Outcome != plugintest.Succeeded || second.Took != minuteOfPage {
			t.Fatal(second)
		}
	})
}

func TestPrintStopsWhenItIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, plugin.HandleResult("PRINT", Print, plugin.Timeout(time.Hour)))
		printing := h.Begin(plugintest.Job{Payload: Args{Pages: 30}})
		printing.Progress(t.Context()) // the first page
		printing.Stop(plugin.ErrCanceled)
		if result := printing.Wait(); result.Outcome != plugintest.Canceled || result.Took != minuteOfPage {
			t.Fatal(result)
		}
	})
}
