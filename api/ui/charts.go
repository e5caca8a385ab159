package ui

import (
	"fmt"
	"html/template"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// seriesWindows are the windows of a series, by the minutes that the overview looks back.
var seriesWindows = map[int]v1.SeriesWindow{15: v1.QuarterHour, 60: v1.Hour, 1440: v1.Day}

// chart is drawn by charts.js from the columns of the table of the series.
type chart struct {
	ID, Title, Columns string
	// Seconds says that the values are durations. Their axis is logarithmic.
	Seconds bool
}

// charts are those of the overview.
func charts(series *v1.Series) []chart {
	per := took(float64(series.SlotSeconds))
	if series.SlotSeconds%60 == 0 {
		per = plural(series.SlotSeconds/60, "minute", "minutes")
	}
	return []chart{
		{ID: "plot-ended", Title: "Ended, each " + per, Columns: "succeeded retried dead canceled"},
		{ID: "plot-open", Title: "Open jobs", Columns: "open"},
		{ID: "plot-took", Title: "Wait and run", Columns: "wait50 wait95 run50 run95", Seconds: true},
	}
}

// Spark is a small picture of how many attempts of a type have ended in each slot, and of those
// that failed. It is empty if none have.
func (o overview) Spark(jobType string) template.HTML {
	if o.Series == nil {
		return ""
	}
	for _, one := range o.Series.JobTypes {
		if one.JobType == jobType {
			return spark(one)
		}
	}
	return ""
}

const (
	sparkWidth  = 120
	sparkHeight = 24
)

func spark(one v1.SeriesType) template.HTML {
	var ended, failed, most int64
	for i, n := range one.Ended {
		ended += n
		failed += one.Failed[i]
		most = max(most, n)
	}
	text := count(ended) + " ended"
	if failed > 0 {
		text += ", " + count(failed) + " failed"
	}
	picture := &strings.Builder{}
	fmt.Fprintf(picture, `<svg class="spark" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s"><title>%[3]s</title>`,
		sparkWidth, sparkHeight, text)
	width := float64(sparkWidth) / float64(max(len(one.Ended), 1))
	bars := func(class string, counts []int64) {
		path := &strings.Builder{}
		for i, n := range counts {
			if n > 0 {
				high := max(float64(sparkHeight)*float64(n)/float64(most), 1)
				fmt.Fprintf(path, "M%.1f %d v%.1f", (float64(i)+0.5)*width, sparkHeight, -high)
			}
		}
		if path.Len() > 0 {
			fmt.Fprintf(picture, `<path class="%s" d="%s" stroke="currentColor" stroke-width="%.1f"/>`, class, path, max(width*0.8, 1))
		}
	}
	bars("soft", one.Ended)
	bars("dead", one.Failed)
	picture.WriteString("</svg>")
	return template.HTML(picture.String())
}
