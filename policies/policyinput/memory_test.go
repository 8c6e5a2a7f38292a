package policyinput

import "testing"

// A verdict is found again for the same policy and the same values of the members that were read. It is not cached if the policy
// reads the time.
func TestCacheKeys(t *testing.T) {
	cache := NewCache[string](4)
	const policy = 3
	narrow := [][]string{{"caller", "team"}, {"resource", "after"}}
	key := func(in *Input, reads [][]string, of int) (Key, bool) {
		d, err := in.Document()
		if err != nil {
			t.Fatal(err)
		}
		return cache.Key(d, NewProjection(reads), of)
	}
	first, ok := key(full(), narrow, policy)
	if !ok {
		t.Fatal("a policy that does not read the time is not cached")
	}
	cache.Add(first, "denied")
	for name, tc := range map[string]struct {
		change func(*Input)
		reads  [][]string
		of     int
		cached bool
		found  bool
	}{
		"the same":                          {func(*Input) {}, narrow, policy, true, true},
		"a member that is not read":         {func(in *Input) { in.Caller.Key = "other" }, narrow, policy, true, true},
		"the time, not read":                {func(in *Input) { in.Time = in.Time.Add(1) }, narrow, policy, true, true},
		"a member that is read":             {func(in *Input) { in.Caller.Team = "other" }, narrow, policy, true, false},
		"a value within a member":           {func(in *Input) { in.Resource.After = map[string]any{"c": "e"} }, narrow, policy, true, false},
		"another policy":                    {func(*Input) {}, narrow, policy + 1, true, false},
		"a policy that reads the time":      {func(*Input) {}, append(narrow[:2:2], []string{"time"}), policy, false, false},
		"a policy that reads the weekday":   {func(*Input) {}, [][]string{{"time", "weekday"}}, policy, false, false},
		"a policy that reads all the input": {func(*Input) {}, [][]string{{}}, policy, false, false},
	} {
		in := full()
		tc.change(in)
		k, cached := key(in, tc.reads, tc.of)
		if cached != tc.cached {
			t.Errorf("%s: may be cached %t, want %t", name, cached, tc.cached)
		}
		if _, found := cache.Get(k); found != tc.found {
			t.Errorf("%s: found %t, want %t", name, found, tc.found)
		}
	}
}
