package parity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// listed is a page of a list as its caller sees it.
type listed struct {
	ids  []string
	next string // "" on the last page
}

// pageOf asks for a page of a list. member is the list in the answer, query begins with ?.
func (d *door) pageOf(t *testing.T, key, member, target, query string) listed {
	t.Helper()
	a := d.ask(t, request("GET", target+strings.TrimSuffix(query, "?"), key, ""))
	var doc map[string]json.RawMessage
	var items []struct{ ID string }
	var pagination struct {
		NextCursor  *string
		HasNextPage *bool
	}
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil || a.Status != 200 {
		t.Fatalf("%s%s: %d %s (%v)", target, query, a.Status, a.Body, err)
	}
	if json.Unmarshal(doc[member], &items) != nil || json.Unmarshal(doc["pagination"], &pagination) != nil || pagination.HasNextPage == nil ||
		*pagination.HasNextPage != (pagination.NextCursor != nil) || pagination.NextCursor != nil && *pagination.NextCursor == "" {
		t.Fatalf("%s%s: not a page: %s", target, query, a.Body)
	}
	var got listed
	for _, item := range items {
		got.ids = append(got.ids, item.ID)
	}
	if pagination.NextCursor != nil {
		got.next = *pagination.NextCursor
	}
	return got
}

// walk reads a list to its end, with a limit for each page in turn, and returns the ids and the sizes of the pages.
func (d *door) walk(t *testing.T, key, member, target string, limits ...int) (ids []string, sizes []int) {
	t.Helper()
	query := "?"
	for n := 0; ; n++ {
		if n > 100 {
			t.Fatalf("%s does not end", target)
		}
		p := d.pageOf(t, key, member, target, query+fmt.Sprint("limit=", limits[n%len(limits)]))
		ids, sizes = append(ids, p.ids...), append(sizes, len(p.ids))
		if p.next == "" {
			return ids, sizes
		}
		query = "?cursor=" + p.next + "&"
	}
}

// pods makes pods with the platform's key, which have no owner, and returns their ids.
func (d *door) pods(t *testing.T, n int) (ids []string) {
	t.Helper()
	for range n {
		id, _ := d.asPlatform(t, "POST", "/v2/pods", podL4)["id"].(string)
		ids = append(ids, id)
	}
	return ids
}

// remove deletes pods with the platform's key.
func (d *door) remove(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		d.asPlatform(t, "DELETE", "/v2/pods/"+id, "")
	}
}

// operatorAlone has key_other see its own resources alone.
func operatorAlone(d *door) {
	apart("{read: key}")(d)
	d.text = strings.Replace(d.text, "SHA256(key_other), roles: [admin]", "SHA256(key_other), roles: [operator]", 1)
}

// rents makes a pod as key_other, and returns its id.
func (d *door) rents(t *testing.T, name string) string {
	t.Helper()
	a := d.ask(t, request("POST", "/v2/pods", "key_other", strings.Replace(podL4, `"a"`, `"`+name+`"`, 1)))
	if a.Status != 201 {
		t.Fatalf("create: %d %s", a.Status, a.Body)
	}
	id, _ := field(t, a.Body, "id").(string)
	return id
}

// newestFirst returns ids in the order of lists.
func newestFirst(ids []string) []string {
	out := slices.Clone(ids)
	slices.Reverse(out)
	return out
}

// TestPagesOfCallers: each of the lists is walked in pages of two, whatever pages the platform has, and with other limits from page to page.
func TestPagesOfCallers(t *testing.T) {
	t.Parallel()
	for _, records := range []int{2, 3, 0, -1} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d *door) {
				pods := d.pods(t, 5)
				endpoint, _ := d.asPlatform(t, "POST", "/v2/serverless", bodies["createEndpoint"])["id"].(string)
				for n := range 4 {
					d.asPlatform(t, "POST", "/v2/serverless", bodies["createEndpoint"])
					d.asPlatform(t, "PATCH", "/v2/serverless/"+endpoint, fmt.Sprintf(`{"image":"img:%d"}`, n+2))
					d.asPlatform(t, "POST", "/v2/templates", fmt.Sprintf(`{"name":"t%d","image":"img:1"}`, n))
				}
				d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1"}`)
				for member, target := range map[string]string{"pods": "/v2/pods", "endpoints": "/v2/serverless", "releases": "/v2/serverless/" + endpoint + "/releases", "templates": "/v2/templates"} {
					ids, sizes := d.walk(t, "key_platform", member, target, 2)
					if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(distinct) != 5 || !slices.Equal(sizes, []int{2, 2, 1}) {
						t.Errorf("%s: %v in pages of %v, want five in pages of two", member, ids, sizes)
					}
					if member == "pods" && !slices.Equal(ids, newestFirst(pods)) {
						t.Errorf("%v, want the newest first: %v", ids, newestFirst(pods))
					}
				}
				for limits, want := range map[[3]int][]int{{1, 3, 2}: {1, 3, 1}, {3, 1, 1}: {3, 1, 1}, {5, 5, 5}: {5}, {4, 1000, 1}: {4, 1}} {
					if ids, sizes := d.walk(t, "key_platform", "pods", "/v2/pods", limits[:]...); !slices.Equal(ids, newestFirst(pods)) || !slices.Equal(sizes, want) {
						t.Errorf("limits %v: %v in pages of %v, want %v", limits, ids, sizes, want)
					}
				}
				if p := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?"); !slices.Equal(p.ids, newestFirst(pods)) || p.next != "" {
					t.Errorf("without limit: %v", p)
				}
				for _, legacy := range []string{request("GET", "/v1/pods", "key_platform", ""), graphqlBy("key_platform", `{ myself { pods { id } } }`)} {
					if a := d.ask(t, legacy); strings.Count(a.Body, `"id"`) < 5 || strings.Contains(a.Body, "pagination") {
						t.Errorf("%s: %d %s, want all five", legacy, a.Status, a.Body)
					}
				}
			}, paged(t, records))
		})
	}
}

// The parameters are described, and refused at their places. Lists without pages have neither.
func TestParametersOfPages(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.pods(t, 3)
		for query, want := range map[string]string{
			"cursor=": "query.cursor: ", "cursor=x": "query.cursor: does not belong to this caller and list", "limit=0": "query.limit: ", "limit=1001": "query.limit: ",
			"limit=x": "query.limit: ", "limit=-1": "query.limit: ", "limit=1.0": "query.limit: ", "limit=3": "", "limit=1000&includeClusterPods=true": "",
		} {
			a := d.ask(t, request("GET", "/v2/pods?"+query, "key_platform", ""))
			if want == "" && a.Status != 200 || want != "" && (a.Status != 422 || !strings.Contains(a.Body, want)) {
				t.Errorf("%s: %d %s, want %q", query, a.Status, a.Body, want)
			}
		}
		for _, target := range []string{"/v2/clusters?limit=1", "/v2/network-volumes?limit=0&cursor=x", "/v2/catalog/templates?limit=x"} {
			if a := d.ask(t, request("GET", target, "key_platform", "")); a.Status != 200 || strings.Contains(a.Body, "pagination") {
				t.Errorf("%s: %d %s", target, a.Status, a.Body)
			}
		}
	}, paged(t, 2))
}

// TestOwnershipOverPages: hidden resources between a caller's own leave no gaps, no page for themselves, and no trace in the cursors.
func TestOwnershipOverPages(t *testing.T) {
	t.Parallel()
	for _, records := range []int{2, 0, -1} {
		t.Run(fmt.Sprint(records), func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d *door) {
				d.reconcile(t)
				d.pods(t, 3)
				var mine []string
				for n := range 4 {
					mine = append(mine, d.rents(t, fmt.Sprint("mine", n)))
					d.pods(t, n)
				}
				for limits, want := range map[[2]int][]int{{1, 1}: {1, 1, 1, 1}, {2, 2}: {2, 2}, {3, 3}: {3, 1}, {1, 2}: {1, 2, 1}, {4, 4}: {4}} {
					ids, sizes := d.walk(t, "key_other", "pods", "/v2/pods", limits[:]...)
					if !slices.Equal(ids, newestFirst(mine)) || !slices.Equal(sizes, want) {
						t.Errorf("limits %v: %v in pages of %v, want %v in %v", limits, ids, sizes, newestFirst(mine), want)
					}
				}
				lengths, query := map[int]bool{}, "?limit=1"
				for p := d.pageOf(t, "key_other", "pods", "/v2/pods", query); p.next != ""; p = d.pageOf(t, "key_other", "pods", "/v2/pods", query+"&cursor="+p.next) {
					lengths[len(p.next)] = true
				}
				if len(lengths) != 1 {
					t.Errorf("cursors have the lengths %v, want one", lengths)
				}
				if p := d.pageOf(t, "key_tiny", "pods", "/v2/pods", "?"); len(p.ids) > 0 || p.next != "" {
					t.Errorf("a caller without pods sees %v", p)
				}
				if ids, sizes := d.walk(t, "key_exempt", "pods", "/v2/pods", 4); len(ids) != 13 || !slices.Equal(sizes, []int{4, 4, 4, 1}) {
					t.Errorf("an admin sees %v in pages of %v, want thirteen", ids, sizes)
				}
			}, paged(t, records), operatorAlone)
		})
	}
}

// Of many hidden resources a page reads at most twenty pages of the platform; the cursor continues from there.
func TestPagesOfHiddenResources(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.reconcile(t)
		mine := d.rents(t, "first")
		d.pods(t, 45)
		newest := d.rents(t, "last")
		before := len(d.platform.CallsTo("listPods"))
		first := d.pageOf(t, "key_other", "pods", "/v2/pods", "?limit=1")
		if calls := len(d.platform.CallsTo("listPods")) - before; !slices.Equal(first.ids, []string{newest}) || first.next == "" || calls != 20 {
			t.Fatalf("first page: %v by %d calls, want %s by 20", first, calls, newest)
		}
		if second := d.pageOf(t, "key_other", "pods", "/v2/pods", "?limit=1&cursor="+first.next); !slices.Equal(second.ids, []string{mine}) || second.next != "" {
			t.Errorf("second page: %v, want %s", second, mine)
		}
	}, paged(t, 2), operatorAlone)
}

// churn walks the pods of key_other in pages, and creates and deletes pods between the pages.
func churn(t *testing.T, d *door, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var alive, made []string
	rent := func() {
		alive = append(alive, d.rents(t, fmt.Sprint("p", len(made))))
		made = append(made, alive[len(alive)-1])
	}
	for range 8 {
		rent()
		d.pods(t, r.IntN(2))
	}
	all := slices.Clone(alive)
	seen, query := map[string]bool{}, "?"
	for {
		p := d.pageOf(t, "key_other", "pods", "/v2/pods", query+fmt.Sprint("limit=", 1+r.IntN(3)))
		for _, id := range p.ids {
			if seen[id] {
				t.Errorf("seed %d: %s is on two pages", seed, id)
			}
			seen[id] = true
		}
		if p.next == "" {
			break
		}
		for range r.IntN(4) {
			if i := r.IntN(len(alive)); r.IntN(2) == 0 && len(alive) > 3 {
				d.asPlatform(t, "DELETE", "/v2/pods/"+alive[i], "")
				alive = slices.Delete(alive, i, i+1)
			} else {
				rent()
			}
		}
		query = "?cursor=" + p.next + "&"
	}
	for _, id := range all {
		if !seen[id] && slices.Contains(alive, id) {
			t.Errorf("seed %d: %s existed all along and is on no page: %v", seed, id, seen)
		}
	}
}

// TestPagesUnderChange: no item is on two pages, and none that exists all along is on no page.
func TestPagesUnderChange(t *testing.T) {
	t.Parallel()
	for name, isolation := range map[string]option{"hidden between": operatorAlone, "nothing hidden": apart("{read: org}")} {
		for _, records := range []int{2, 3, 0, -1} {
			t.Run(fmt.Sprint(name, " ", records), func(t *testing.T) {
				t.Parallel()
				eachDoor(t, func(t *testing.T, d *door) {
					if name == "hidden between" {
						d.reconcile(t)
					}
					for seed := range uint64(4) {
						churn(t, d, seed)
						ids, _ := d.walk(t, "key_exempt", "pods", "/v2/pods", 1000)
						d.remove(t, ids)
					}
				}, paged(t, records), isolation)
			})
		}
	}
}

// A caller that deletes each page before it asks for the next one deletes everything.
func TestPagesThatAreDeleted(t *testing.T) {
	t.Parallel()
	for _, records := range []int{2, 0, -1} {
		eachDoor(t, func(t *testing.T, d *door) {
			d.pods(t, 41)
			query, deleted := "?limit=20", 0
			for p := d.pageOf(t, "key_platform", "pods", "/v2/pods", query); ; p = d.pageOf(t, "key_platform", "pods", "/v2/pods", query+"&cursor="+p.next) {
				d.remove(t, p.ids)
				deleted += len(p.ids)
				if p.next == "" {
					break
				}
			}
			if deleted != 41 {
				t.Errorf("%d of 41 are deleted", deleted)
			}
		}, paged(t, records))
	}
}

// A place whose surroundings are gone is not found again: its cursor is refused, unless nothing can follow.
func TestALostPlace(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		pods := newestFirst(d.pods(t, 60))
		first := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=20")
		d.remove(t, pods[10:30])
		if p := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?cursor="+first.next); !slices.Equal(p.ids, pods[30:]) {
			t.Errorf("with six items left on one side: %v, want %v", p.ids, pods[30:])
		}
		d.remove(t, pods[:10])
		d.remove(t, pods[30:40])
		a := d.ask(t, request("GET", "/v2/pods?cursor="+first.next, "key_platform", ""))
		if a.Status != 422 || !strings.Contains(a.Body, "query.cursor: cannot be continued") || !strings.Contains(a.Body, "request the first page") {
			t.Errorf("%d %s, want 422", a.Status, a.Body)
		}
		d.remove(t, pods[40:])
		if p := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?cursor="+first.next); len(p.ids) > 0 || p.next != "" {
			t.Errorf("of an empty list: %v", p)
		}
		d.pods(t, 3)
		last := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=2").next
		ids, _ := d.walk(t, "key_platform", "pods", "/v2/pods", 1000)
		d.remove(t, ids)
		d.pods(t, 1)
		if p := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?cursor="+last); len(p.ids) > 0 || p.next != "" {
			t.Errorf("behind the last item: %v, want nothing", p)
		}
	}, paged(t, -1))
}

// TestCursorsOfOthers: a cursor is valid for its caller, operation, path and parameters, and as it was made, and tells all wrong ones alike.
func TestCursorsOfOthers(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.pods(t, 3)
		endpoint, _ := d.asPlatform(t, "POST", "/v2/serverless", bodies["createEndpoint"])["id"].(string)
		other, _ := d.asPlatform(t, "POST", "/v2/serverless", bodies["createEndpoint"])["id"].(string)
		d.asPlatform(t, "PATCH", "/v2/serverless/"+endpoint, `{"image":"img:9"}`)
		cursor := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=1").next
		theirs := d.pageOf(t, "key_research", "pods", "/v2/pods", "?limit=1").next
		releases := d.pageOf(t, "key_platform", "releases", "/v2/serverless/"+endpoint+"/releases", "?limit=1").next
		middle := []byte(cursor)
		middle[len(middle)/2] ^= 1
		said := map[string]bool{}
		for name, target := range map[string]string{
			"another caller's": "/v2/pods?cursor=" + theirs, "another operation's": "/v2/serverless?cursor=" + cursor, "of releases": "/v2/pods?cursor=" + releases,
			"of another endpoint": "/v2/serverless/" + other + "/releases?cursor=" + releases, "other parameters": "/v2/pods?includeClusterPods=true&cursor=" + cursor,
			"truncated": "/v2/pods?cursor=" + cursor[:len(cursor)-4], "cut short": "/v2/pods?cursor=" + cursor[:20], "one character": "/v2/pods?cursor=A",
			"longer": "/v2/pods?cursor=" + cursor + "AAAA", "altered": "/v2/pods?cursor=" + url.QueryEscape(string(middle)), "very long": "/v2/pods?cursor=" + strings.Repeat("A", 6000),
			"twice": "/v2/pods?cursor=" + cursor + cursor, "padded": "/v2/pods?cursor=" + cursor + "%3D", "not base64": "/v2/pods?cursor=%F0%9F%92%A9", "the platform's own": "/v2/pods?cursor=YmVmb3JlPTIgL3YyL3BvZHM_ZmFsc2U",
		} {
			a := d.ask(t, request("GET", target, "key_platform", ""))
			errors := fmt.Sprint(field(t, a.Body, "errors"))
			if said[errors] = true; a.Status != 422 || !strings.Contains(errors, "query.cursor: does not belong to this caller and list") || !strings.Contains(errors, "request the first page") {
				t.Errorf("%s: %d %s, want 422", name, a.Status, a.Body)
			}
		}
		if len(said) != 1 {
			t.Errorf("wrong cursors are told apart: %v", said)
		}
		if p := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=2&cursor="+cursor); len(p.ids) != 2 || p.next != "" {
			t.Errorf("the cursor itself: %v", p)
		}
	}, paged(t, 2))
}

// All gateways with the organisation's platform key take each other's cursors, and none with another key.
func TestCursorsOfOtherGateways(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.pods(t, 3)
		cursor := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=1").next
		again := *d
		again.open(t)
		if p := again.pageOf(t, "key_platform", "pods", "/v2/pods", "?cursor="+cursor); len(p.ids) != 2 {
			t.Errorf("at another gateway: %v, want two", p)
		}
		for _, other := range []string{"GLOBEX", "ACME"} { // accounts change places, and then change back
			back := map[string]string{"GLOBEX": "ACME", "ACME": "GLOBEX"}[other]
			text := strings.NewReplacer("{env: ACME}", "{env: "+other+"}", "{env: GLOBEX}", "{env: "+back+"}").Replace(d.text)
			if err := d.gateway.Swap(load(t, text, d.upstream)); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"GLOBEX": 422, "ACME": 200}[other]
			a := d.ask(t, request("GET", "/v2/pods?cursor="+cursor, "key_platform", ""))
			if a.Status != want || want == 422 && !strings.Contains(a.Body, "the platform key has changed: request the first page") {
				t.Errorf("with the key of %s: %d %s, want %d", other, a.Status, a.Body, want)
			}
		}
	}, paged(t, 2))
}

// A cursor that the platform does not take any more is refused like a wrong one: its answer would show the platform's cursor.
func TestExpiredCursors(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.pods(t, 5)
		cursor := d.pageOf(t, "key_platform", "pods", "/v2/pods", "?limit=1").next
		a := d.ask(t, request("GET", "/v2/pods?cursor="+cursor, "key_platform", ""))
		if a.Status != 422 || !strings.Contains(a.Body, "query.cursor: has expired: request the first page") || strings.Contains(a.Body, "createdAt") {
			t.Errorf("%d %s, want 422", a.Status, a.Body)
		}
	}, paged(t, 2), pagesFail(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprintf(w, `{"title":"x","status":422,"detail":"createdAt %s is not a cursor"}`, r.URL.Query().Get("cursor"))
	}))
}
