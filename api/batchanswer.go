package api

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

func answerJSON(status int, body any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", mediaJSON)
		ctx.SetStatus(status)
		// The client has left when this fails.
		_ = newEncoder(ctx.BodyWriter()).Encode(body)
	}}
}

func answerLines(jobs []v1.Accepted) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", mediaLines)
		ctx.SetStatus(http.StatusAccepted)
		out := bufio.NewWriter(ctx.BodyWriter())
		encoder := newEncoder(out)
		for index := range jobs {
			if encoder.Encode(v1.BatchResult{Index: index, Job: &jobs[index]}) != nil {
				return
			}
		}
		_ = out.Flush()
	}}
}
