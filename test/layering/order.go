package layering

// Order lists stages of gateway/chain.go that must stand before others. The name of a stage has its part:
// Call.Judge. Call.* stands for every stage of the part that the row does not name. Responses run backwards.
type Order struct {
	Before, After []string
	// Why is the reason, for the failure of the test.
	Why string
}

// Orders returns the rows.
func Orders() []Order {
	return []Order{
		{[]string{"Content.Receive"}, []string{"Content.Decode"}, "a body is bounded before it is decoded"},
		{
			[]string{"Head.Match", "Head.Count"},
			[]string{"Head.Routed"},
			"match notes that no route fits, and routed refuses when the caller has been identified and counted: strangers learn no routes, and guessing costs quota",
		},
		{[]string{"Head.Identify"}, []string{"Head.Legacy", "Head.Admit", "Head.Count", "Head.Routed"}, "these ask for the caller or its organisation"},
		{[]string{"Call.Repeats"}, []string{"Call.Reserve"}, "reserve notes the intent that once has begun, in the same trip to the store"},
		{[]string{"Call.Repeats"}, []string{"Call.Judge"}, "a repeat gets the answer to the first request and is not judged; on the way out, once answers a repeat that the judge refused"},
		{[]string{"Call.Ownership"}, []string{"Call.Judge"}, "the judge reads the objects that a call names, and own has replaced the ids of objects that the caller may not see"},
		{[]string{"Call.Judge"}, []string{"Call.Pages"}, "the judge validates the parameters of a page, which pages takes out of the query"},
		{[]string{"Call.Pages"}, []string{"Call.Rebuild"}, "rebuild asks the platform for the page that pages has found"},
		{[]string{"Call.Labels"}, []string{"Call.Reserve"}, "the ledger keeps the labels with the reservation"},
		{[]string{"Call.Reserve", "Call.Ownership"}, []string{"Call.Measure"}, "on the way out, measure reads what a run has cost and its id, reserve commits the cost and own remembers the job's owner"},
		{[]string{"Head.Count"}, []string{"Call.Count"}, "a legacy request is counted once in the head, and the calls that it becomes in the call part"},
		{[]string{"Call.Repeats"}, []string{"Call.Addresses"}, "on the way out, once keeps the answer for repeats: it must name the gateway's addresses by then"},
		{[]string{"Call.*"}, []string{"Call.Lookup", "Call.Share"}, "on the way out, both see the platform's answers before another stage rewrites them; lookup is the last to refuse a call of a gateway that was held up"},
	}
}
