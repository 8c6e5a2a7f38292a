package parity

import "testing"

// An operator resets what an organisation has, whether or not it was counted yet.
func TestScopesThatCanBeReset(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for scope, want := range map[string]int{
			"org:acme": 204, "team:research": 204, "key:key_research": 204,
			"org:globex": 400, "team:unknown": 400, "key:unknown": 400, "class:uncounted": 400,
		} {
			if got := d.asOperator(t, "POST", "/admin/limits/reset?org=acme&scope="+scope, "", nil); got != want {
				t.Errorf("%s: status %d, want %d", scope, got, want)
			}
		}
	})
}
