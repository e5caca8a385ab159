package apiclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Problem is an answer that is not a success.
type Problem struct {
	v1.Problem
	// Advice says what to do about it; empty for nothing.
	Advice string
}

// Error is the detail, then a line for each mistake.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = strings.ToLower(p.Title)
	}
	lines := []string{text}
	for _, mistake := range p.Errors {
		lines = append(lines, "  "+mistake.Location+": "+mistake.Message)
	}
	if p.RetryAfter > 0 && p.Status == http.StatusTooManyRequests {
		lines = append(lines, fmt.Sprintf("  Try again in %s.", p.RetryAfter))
	}
	if p.Advice != "" {
		lines = append(lines, "  "+p.Advice)
	}
	return strings.Join(lines, "\n")
}

// maxProblemBytes bounds an answer, which may come from any server.
const maxProblemBytes = 1 << 20

func problemOf(answer *http.Response, login Login) *Problem {
	problem := &Problem{}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblemBytes))
	if json.Unmarshal(text, &problem.Problem) != nil || problem.Status == 0 {
		problem = &Problem{Problem: v1.Problem{Detail: "the server answers " + answer.Status}}
	}
	problem.Status = answer.StatusCode
	if problem.Detail == "" && problem.Title == "" {
		problem.Title = "status " + strconv.Itoa(answer.StatusCode)
	}
	if location := answer.Header.Get("Location"); location != "" && answer.StatusCode/100 == 3 {
		problem.Detail = "the server redirects to " + location + ", which is not followed"
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	problem.Advice = login.advice(answer.StatusCode)
	return problem
}
