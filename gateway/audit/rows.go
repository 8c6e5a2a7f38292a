package audit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Endpoints returns the endpoints for the audit log. The endpoints of a nil Log refuse
// every call.
func (l *Log) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/audit/log", Summary: "Audit log of this gateway: changes with their authors and results", AuditsReads: true,
			Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(l.list), ErrorStatuses: []int{http.StatusConflict},
			Commands: []adminapi.Command{{
				Use: "audit list", Short: "List changes with their authors and results",
				Example: "tollgate audit list --org acme --since 24h\ntollgate audit list --by ada --operation 'POST /admin/keys/revoke'",
				Long: `Lists the audit log of the queried gateway, including rotated files, newest first, with
one line for each change and its result. A list reads at most 8 MiB of the log; to
continue, pass the number it prints with "--before". With "--reads", lists reads of
callers' records instead. To verify the chain of the files, use "tollgate audit verify".`,
			}},
		},
	}
}

// changed selects the changes to list.
type changed struct {
	adminapi.OptionalOrg

	By        string         `query:"by" doc:"only changes by this key, token subject, or admin"`
	Operation string         `query:"operation" doc:"only this operation: an operationId, or method and path of the admin API"`
	Kind      string         `query:"kind" doc:"only changes of this kind of subject, such as pod or approval"`
	Resource  string         `query:"resource" doc:"only changes of the resource with this id or name"`
	Reads     bool           `query:"reads" doc:"list reads of callers' records by admins, in place of changes"`
	Since     adminapi.Since `query:"since" doc:"start of the period: a duration before now, such as 24h, or a time"`
	Before    int            `query:"before" doc:"only changes with a lower number; pass the value of next from the previous page"`
	Limit     int            `query:"limit" min:"1" max:"500" default:"50" doc:"maximum number of changes"`
}

func (l *Log) list(ctx context.Context, _ adminapi.Principal, p changed) (*Page, error) {
	if l == nil {
		return nil, adminapi.RefusedError{Status: http.StatusConflict, Reason: "gateway does not write an audit log: audit.file is not set"}
	}
	page, err := l.List(ctx, Query{
		Org: string(p.Org), By: p.By, Operation: p.Operation, Kind: p.Kind, Resource: p.Resource, Reads: p.Reads, Since: time.Time(p.Since),
		Before: int64(p.Before), Limit: p.Limit,
	})
	if errors.Is(err, ErrNotRegular) {
		err = adminapi.RefusedError{Status: http.StatusConflict, Reason: err.Error()}
	}
	return &page, err
}
