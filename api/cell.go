package api

import (
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/audit"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// nameCell makes every answer of a cell name it, so that clients notice if they ask another
// one than they meant.
func nameCell(cell job.Cell) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if cell == (job.Cell{}) {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(v1.CellHeader, cell.String())
			next.ServeHTTP(w, r)
		})
	}
}

// onlyOwnIDs refuses ids of other cells. A 404 would say that there is no such job, and the
// client might submit it again. Ids of before there were cells may be anywhere.
func (r *router) onlyOwnIDs(ctx huma.Context, next func(huma.Context)) {
	id, err := job.ParseID(ctx.Param("id"))
	of := id.Cell()
	if err != nil || of == r.cell || of == (job.Cell{}) || r.cell == (job.Cell{}) {
		next(ctx)
		return
	}
	refusal := problem(http.StatusMisdirectedRequest, fmt.Sprintf("this id is of cell %s, and this is cell %s: ask the proxy, or cell %[1]s", of, r.cell))
	audit.Failed(ctx.Context(), refusal)
	_, w := humachi.Unwrap(ctx)
	write(w, refusal)
}
