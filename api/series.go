package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

type seriesInput struct {
	call
	Window  windowParam `query:"window" doc:"How far back to look: 15 minutes in slots of 10 seconds, an hour in slots of a minute, or a day in slots of 15 minutes."`
	JobType string      `query:"jobType" doc:"Only jobs of this type."`
}

// windowParam is the window of a series; an hour if the request has none.
type windowParam struct{ v1.SeriesWindow }

// UnmarshalText accepts the name of a window.
func (p *windowParam) UnmarshalText(text []byte) error {
	p.SeriesWindow = v1.SeriesWindow(text)
	if !slices.Contains(v1.SeriesWindows(), p.SeriesWindow) {
		return fmt.Errorf("must be one of 15m, 1h and 24h")
	}
	return nil
}

// Schema describes the windows.
func (windowParam) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Default: v1.Hour}
	for _, w := range v1.SeriesWindows() {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// series computes the answer once for all requests that wait for it.
func (o *operatorRoutes) series(ctx context.Context, in *seriesInput) (*body[v1.Series], error) {
	window := in.Window.SeriesWindow
	if window == "" {
		window = v1.Hour
	}
	series, err := once(ctx, o.deadline, &o.charting, string(window)+" "+in.JobType, func(ctx context.Context) (v1.Series, error) {
		return o.operations.Series(ctx, window, in.JobType)
	})
	if err != nil {
		return nil, err
	}
	return &body[v1.Series]{series}, nil
}
