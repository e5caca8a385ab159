package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

type batchFlags struct {
	file   string
	atomic bool
}

func (b *batchFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&b.file, "batch", "", "`file` with a submission on each line (NDJSON), or - for standard input")
	c.Flags().BoolVar(&b.atomic, "atomic", false, "with --batch: accept all lines or none, at most 10000")
}

// submitBatch submits the lines of a file, and reports each rejected line by its
// number.
func (s *session) submitBatch(ctx context.Context, b batchFlags) error {
	source, size := s.stdin, int64(0)
	if b.file != "-" {
		file, err := os.Open(b.file)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		source = file
	}
	upload := apiclient.NewUpload(source)
	progress := &batchProgress{
		upload: upload, size: size, line: show.NewLine(s.notes), shown: s.notes.Terminal, began: time.Now(),
	}
	submit := s.SubmitEach
	if b.atomic {
		submit = s.SubmitAll
	}
	total, err := submit(ctx, upload, func(result apiclient.Result) error { return s.tell(result, progress) })
	progress.line.Clear()
	if total.Accepted+total.Refused > 0 || err == nil {
		var brokenOff *apiclient.BrokenOffError
		s.conclude(total, errors.As(err, &brokenOff), time.Since(progress.began))
	}
	switch {
	case err != nil:
		return err
	case total.Refused > 0:
		return Exit{CodeFailed}
	}
	return nil
}

// tell prints what became of one line.
func (s *session) tell(result apiclient.Result, progress *batchProgress) error {
	if result.Problem != nil {
		progress.line.Above(complaint(fmt.Sprintf("line %d", result.Line), result.Problem))
	}
	if result.Line > 0 {
		progress.step(result.Problem != nil)
	}
	if s.json {
		return s.out.JSON(result.Answer)
	}
	return nil
}

// conclude prints the total; more says that there may be more.
func (s *session) conclude(total apiclient.Total, more bool, took time.Duration) {
	if s.json {
		return
	}
	bound := ""
	if more {
		bound = "at least "
	}
	_, _ = fmt.Fprintf(s.out, "%s%s accepted, %s refused in %s\n",
		bound, s.out.Paint(show.Good, show.Count(total.Accepted)), s.count(total.Refused, show.Bad), show.Age(took))
}

// count paints a number that is not zero.
func (s *session) count(n int, style show.Style) string {
	if n == 0 {
		return "0"
	}
	return s.out.Paint(style, show.Count(n))
}

// batchProgress draws the progress of a batch.
type batchProgress struct {
	upload  *apiclient.Upload
	size    int64
	line    *show.Line
	shown   bool
	began   time.Time
	done    int
	refused int
}

func (p *batchProgress) step(refused bool) {
	p.done++
	if refused {
		p.refused++
	}
	if !p.shown {
		return
	}
	progress := show.Progress{Noun: "job", Done: p.done, Refused: p.refused, Share: -1, Elapsed: time.Since(p.began)}
	if items, sent := p.upload.Sent(); p.size > 0 && items > 0 {
		// Lines run ahead of their results. Assume that the lines to come are as long
		// as those that were sent.
		progress.Share = float64(sent) / float64(p.size) * float64(p.done) / float64(items)
	}
	p.line.Set(progress.Within(p.line.Width()))
}
