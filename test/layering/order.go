package layering

// Order lists stages of gateway/features.go that must run before others. The name of a stage is prefixed with its part:
// call/evaluate policies. call/* stands for every stage of the part that the row does not name. Responses run in reverse order.
type Order struct {
	Before, After []string
	// Why is the reason, for the failure of the test.
	Why string
}

// Orders returns the rows.
func Orders() []Order {
	return []Order{
		{[]string{"body/limit size"}, []string{"body/decode body"}, "a body is bounded before it is decoded"},
		{
			[]string{"headers/match route", "headers/rate limit"},
			[]string{"headers/require route"},
			"match route only records that no route fits, and require route refuses the request after authentication and rate limiting: strangers cannot discover routes, and guessing uses quota",
		},
		{[]string{"headers/authenticate"}, []string{"headers/record legacy use", "headers/limit concurrency", "headers/rate limit", "headers/require route"}, "these need the caller or its organisation"},
		{[]string{"call/idempotency"}, []string{"call/reserve budget"}, "reserve budget records the intent that idempotency has prepared, in the same request to the store"},
		{[]string{"call/idempotency"}, []string{"call/evaluate policies"}, "a repeat gets the first response and is not evaluated; in the response phase, idempotency answers a repeat that policies refused"},
		{[]string{"call/check ownership"}, []string{"call/evaluate policies"}, "evaluate policies reads the resources in a call, and check ownership has replaced the ids of those that the caller may not see"},
		{[]string{"call/evaluate policies"}, []string{"call/paginate"}, "evaluate policies validates the pagination parameters, which paginate removes from the query"},
		{[]string{"call/paginate"}, []string{"call/build request"}, "build request requests the page that paginate has determined"},
		{[]string{"call/read labels"}, []string{"call/reserve budget"}, "the ledger keeps the labels with the reservation"},
		{[]string{"call/reserve budget", "call/check ownership"}, []string{"call/measure usage"}, "in the response phase, measure usage reads the cost and id of a run, reserve budget commits the cost, and check ownership stores the job's owner"},
		{[]string{"headers/rate limit"}, []string{"call/rate limit"}, "a legacy request is counted once in the headers part, and its v2 calls in the call part"},
		{[]string{"call/idempotency"}, []string{"call/rewrite addresses"}, "in the response phase, idempotency stores the response for repeats, which must contain the gateway's addresses by then"},
		{[]string{"call/*"}, []string{"call/recover lost create", "call/fair share"}, "in the response phase, both see the platform's response before other stages rewrite it; recover lost create makes the last check that the gateway was not paused"},
	}
}
