package ui

import (
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

func hostileTraffic() map[string]any {
	requests := filled[requestsData]().(requestsData)
	requests.Outcomes.Status, requests.Uncounted = 0, false
	return map[string]any{
		"requests": requests,
		"request":  filled[requestData](),
		"limits":   filled[limitData](),
		"legacy":   filled[legacyData](),
	}
}

// hostileRequests are requests for approval, of which one is pending and one granted.
func hostileRequests() []approval.Record {
	requests := filled[[]approval.Record]().([]approval.Record)
	requests[0].State, requests[1].State = approval.Pending, approval.Granted
	return requests
}

// hostileHeld are the hostile data of the page of existing resources.
func hostileHeld() policyData {
	held := of[explain.Audit]()
	return policyData{Held: &held}
}

func hostilePolicy() map[string]any {
	list := filled[policyData]().(policyData)
	list.Held, list.Counts = nil, of[decisions.PolicyCounts]()
	policy := filled[policyPage]().(policyPage)
	policy.Counts.Status, policy.Latest.Status = 0, 0
	return map[string]any{
		"dryrun":     filled[dryRun](),
		"approvals":  approvalData{List: approval.List{Approvals: hostileRequests()}},
		"policies":   list,
		"policy":     policy,
		"playground": filled[playground](),
		"exceptions": filled[exceptionData](),
	}
}
