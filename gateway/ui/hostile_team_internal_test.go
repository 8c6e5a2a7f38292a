package ui

import "github.com/tollgate-dev/tollgate/gateway/selfservice"

func hostileTeam() map[string]any {
	requests := hostileRequests()
	return map[string]any{
		"my":          myData{Me: filled[selfservice.Me]().(selfservice.Me), Scopes: filled[[]scopeBudgets]().([]scopeBudgets)},
		"myspend":     hostileMySpend(),
		"myresources": myResourceData{Shown: excerpt[selfservice.Resource]{Rows: filled[[]selfservice.Resource]().([]selfservice.Resource), Before: hostile}},
		"myrequests":  filled[decisionData](),
		"myrequest":   filled[selfservice.Decision](),
		"myapprovals": excerpt[selfservice.Request]{Rows: []selfservice.Request{{Record: requests[0], MayGrant: true}, {Record: requests[1], MayDeny: true}}},
		"mykeys":      excerpt[teamKey]{Rows: filled[[]teamKey]().([]teamKey)},
	}
}
