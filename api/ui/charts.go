package ui

import (
	"fmt"
	"html/template"
	"slices"
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

// Spark is a small picture of the attempts of a type that have ended. It is empty if none have.
func (o overview) Spark(jobType string) template.HTML {
	if o.Series == nil {
		return ""
	}
	return spark(seriesOfType(o.Series, jobType))
}

// seriesOfType is that of one type among all; empty if the series has none.
func seriesOfType(series *v1.Series, jobType string) v1.SeriesType {
	if at := slices.IndexFunc(series.JobTypes, func(t v1.SeriesType) bool { return t.JobType == jobType }); at >= 0 {
		return series.JobTypes[at]
	}
	return v1.SeriesType{}
}

const (
	sparkWidth  = 120
	sparkHeight = 24
)

// spark is a small picture of how many attempts have ended in each slot, and of those that
// failed.
func spark(one v1.SeriesType) template.HTML {
	ended, failed := total(one.Ended), total(one.Failed)
	text := count(ended) + " ended"
	if failed > 0 {
		text += ", " + count(failed) + " failed"
	}
	return bars(text, one.Ended, one.Failed)
}

// bars draws a bar for each slot, and in it one for the bad part. It is empty if all are zero.
func bars(text string, all, bad []int64) template.HTML {
	if total(all) == 0 {
		return ""
	}
	most := slices.Max(all)
	picture := &strings.Builder{}
	fmt.Fprintf(picture, `<svg class="spark" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s"><title>%[3]s</title>`,
		sparkWidth, sparkHeight, text)
	width := float64(sparkWidth) / float64(len(all))
	draw := func(class string, counts []int64) {
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
	draw("soft", all)
	draw("dead", bad)
	picture.WriteString("</svg>")
	return template.HTML(picture.String())
}

func total(counts []int64) (n int64) {
	for _, one := range counts {
		n += one
	}
	return n
}
