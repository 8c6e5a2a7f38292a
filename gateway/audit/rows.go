package audit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Endpoints are the questions of operators about the log. Those of nil, which is no log, refuse to answer.
func (l *Log) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/audit/log", Summary: "Changes, with their authors and results: the audit log of this gateway", AuditsReads: true, Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(l.list), ErrorStatuses: []int{http.StatusConflict},
			Commands: []adminapi.Command{{
				Use: "audit list", Short: "List changes, with their authors and results", Example: "tollgate audit list --org acme --since 24h\ntollgate audit list --by ada --operation 'POST /admin/keys/revoke'",
				Long: `Lists the audit log of the gateway that is asked, newest first, a line for each
change with its end, through rotated files. A list reads 8 MiB of the log at most;
"--before" with the number that it names goes on. "--reads" lists reads of
records of callers instead. "tollgate audit verify" holds the chain of the files.`,
			}},
		},
	}
}

// changed says which changes are listed.
type changed struct {
	adminapi.OptionalOrg

	By        string         `query:"by" doc:"only those by this key, subject of a token, or admin"`
	Operation string         `query:"operation" doc:"only this operation, by its operationId or as method and path of the admin API"`
	Resource  string         `query:"resource" doc:"only those of a resource, by its id or name"`
	Reads     bool           `query:"reads" doc:"reads of decisions, costs, keys and other records of callers, in the place of changes"`
	Since     adminapi.Since `query:"since" doc:"only entries no older than a duration, such as 24h, or than a time"`
	Before    int            `query:"before" doc:"only changes with a lower number: next of a list leads to the next list"`
	Limit     int            `query:"limit" min:"1" max:"500" default:"50" doc:"how many at most"`
}

func (l *Log) list(ctx context.Context, _ adminapi.Principal, p changed) (*Page, error) {
	if l == nil {
		return nil, adminapi.RefusedError{Status: http.StatusConflict, Reason: "this gateway keeps no audit log: audit.file is not set"}
	}
	page, err := l.List(ctx, Query{
		Org: string(p.Org), By: p.By, Operation: p.Operation, Resource: p.Resource, Reads: p.Reads, Since: time.Time(p.Since), Before: int64(p.Before), Limit: p.Limit,
	})
	if errors.Is(err, ErrNotRegular) {
		err = adminapi.RefusedError{Status: http.StatusConflict, Reason: err.Error()}
	}
	return &page, err
}
