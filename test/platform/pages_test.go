package platform

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// empty is the answer of a paged list without records.
func empty(member string) string {
	return `{"` + member + `":[],"pagination":{"nextCursor":null,"hasNextPage":false}}`
}

// walk reads a list to its end, and returns the ids and the sizes of the pages.
func walk(r *rig, list, member string) (ids []string, pages []int) {
	r.t.Helper()
	for target := list; ; {
		got := r.want(200, "GET", target, "")
		items, _ := got.at(member).([]any)
		for i := range items {
			ids = append(ids, got.text(member+"."+strconv.Itoa(i)+".id"))
		}
		pages = append(pages, len(items))
		if got.at("pagination.hasNextPage") != true {
			if got.at("pagination.nextCursor") != nil {
				r.t.Errorf("the last page of %s has a cursor: %s", list, got.raw)
			}
			return ids, pages
		}
		target = list + "&cursor=" + got.text("pagination.nextCursor")
	}
}

func TestPages(t *testing.T) {
	r := newRig(t, Options{PageSize: 2})
	var made []string
	for range 5 {
		made = append(made, r.newPod(gpuPod))
	}
	slices.Reverse(made)
	for list, want := range map[string][]int{"/v2/pods?": {2, 2, 1}, "/v2/pods?limit=5": {5}, "/v2/pods?limit=3": {3, 2}} {
		ids, pages := walk(r, list, "pods")
		if !slices.Equal(ids, made) || !slices.Equal(pages, want) {
			t.Errorf("%s: %v in pages of %v, want %v, the newest first, in %v", list, ids, pages, made, want)
		}
	}

	// A record that is deleted, or made, meanwhile moves no other to a page that was read.
	first := r.want(200, "GET", "/v2/pods", "")
	r.want(204, "DELETE", "/v2/pods/"+made[0], "")
	r.newPod(gpuPod)
	cursor := first.text("pagination.nextCursor")
	if got := r.want(200, "GET", "/v2/pods?cursor="+cursor, "").text("pods.0.id"); got != made[2] {
		t.Errorf("the second page begins with %s, want %s", got, made[2])
	}

	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "cursor=", "cursor=x", "includeClusterPods=true&cursor=" + cursor} {
		r.want(422, "GET", "/v2/pods?"+query, "")
	}
	r.want(422, "GET", "/v2/templates?cursor="+cursor, "")
}

// Members of clusters are left out of a page after it is cut: it can be empty, and more follow.
func TestPagesOfMembers(t *testing.T) {
	r := newRig(t, Options{PageSize: 2, Catalog: endless()})
	pod := r.newPod(gpuPod)
	r.want(201, "POST", "/v2/clusters", `{"name":"c","image":"i","type":"TRAINING","compute":{"gpuTypeId":"NVIDIA A100-SXM4-80GB","gpuCountPerPod":1,"podCount":4}}`)
	if ids, pages := walk(r, "/v2/pods?", "pods"); fmt.Sprint(ids, pages) != fmt.Sprint([]string{pod}, []int{0, 0, 1}) {
		t.Errorf("got %v in pages of %v, want %s alone on the third", ids, pages, pod)
	}
	if ids, pages := walk(r, "/v2/pods?includeClusterPods=true", "pods"); len(ids) != 5 || !slices.Equal(pages, []int{2, 2, 1}) {
		t.Errorf("got %v in pages of %v, want five", ids, pages)
	}
}

// Before its lists were paged, the platform answered them whole.
func TestWithoutPages(t *testing.T) {
	r := newRig(t, Options{PageSize: -1})
	for range 3 {
		r.newPod(gpuPod)
	}
	got := r.want(200, "GET", "/v2/pods?limit=1", "")
	if items, _ := got.at("pods").([]any); len(items) != 3 || got.at("pagination") != nil {
		t.Errorf("got %s", got.raw)
	}
}
