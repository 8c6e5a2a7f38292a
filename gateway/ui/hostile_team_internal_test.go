package ui

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

func hostileTeam() map[string]any {
	c := NewTeam(Team{Now: time.Now, Encrypted: func(*http.Request) bool { return false }, Logger: slog.New(slog.DiscardHandler)}, nil)
	v := &visit{Console: c, scope: adminapi.Principal{Name: hostile}, session: session{Lead: true}}
	v.r = httptest.NewRequest(http.MethodGet, c.path+"requests?operation="+url.QueryEscape(hostile), http.NoBody)
	requests := hostileRequests()
	own := []selfservice.Request{{Record: requests[0], MayGrant: true}, {Record: requests[1], MayDeny: true}}
	f := myFacts{me: of[selfservice.Me](), resources: of[selfservice.ResourceList](), denied: of[decisions.List]()}
	f.requests.Is.Approvals = own
	f.resources.Is.Resources[0].Idle.SnoozedUntil = nil
	request := filled[selfservice.Decision]().(selfservice.Decision)
	form, _, _ := myNewKey(v)
	return map[string]any{
		"my": newMy(v, &f), "myspend": hostileMySpend(), "myresources": listing{Table: ownResourceTable(v, f.resources.Is.Resources)},
		"myrequests": ownRequests(v, &f.denied.Is), "myrequest": newOwnRequest(v, &request), "myapprovals": newApprovalPage(v, own, &f.me.Is),
		"mykeys": teamKeyList(v, filled[[]callers.TeamKey]().([]callers.TeamKey)), "newkey": form,
	}
}
