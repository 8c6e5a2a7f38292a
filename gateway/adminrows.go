package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// AdminRows returns the rows of any gateway for their descriptions. None of them can be asked.
func AdminRows() []row.Row {
	return admin.Deps{Shapes: adminShapes(), Features: new(operators).rows()}.Rows()
}

func adminShapes() admin.Shapes {
	return admin.Shapes{Report: explain.Report{}, Summary: explain.Summary{}, Audit: explain.Audit{}, Replayed: engines.Replayed(), Approval: approval.Record{}, Made: callers.KeyAnswer{}}
}
