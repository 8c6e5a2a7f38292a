package ui

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// searchData holds the data of the search page.
type searchData struct {
	listing

	// only is the page of the only result, if the search text is the ID of the result. The console then shows that page instead of the
	// results.
	only string
}

func loadSearch(v *visit) (any, int, string) {
	var found part[operator.SearchResults]
	if text := v.Query("q"); text != "" {
		found = ask[operator.SearchResults](v, searchRow, url.Values{"q": {text}, "limit": {"50"}})
	}
	return newSearchData(v, &found.Is), found.Status, found.Fault
}

func newSearchData(v *visit, found *operator.SearchResults) (d searchData) {
	text := v.Query("q")
	none := empty{
		Icon: "search", Title: "Search",
		Text: "Enter a part of the ID or name of a resource, key, team or policy, or the whole ID of a request. Resources that no longer run are found if they had costs in the last 30 days.",
	}
	d.Title = "Search"
	if text != "" {
		none.Title, d.Title, d.Text = "No matches", "Results for “"+text+"”", plural(found.All, "result")
	}
	if list := found.Results; len(list) == 1 && list[0].ID == text {
		d.only = resultLink(v, &list[0])
	}
	for _, unknown := range found.Unknown {
		d.Notes = append(d.Notes, note{levelWarn, "Not searched: " + unknown})
	}
	d.Table = searchTable(v, found.Results, none)
	return d
}

// searchTable lists results, the best match first.
func searchTable(v *visit, list []operator.SearchResult, none empty) table {
	return newTable(v, list, tableSpec[operator.SearchResult]{
		Name: "results", Caption: "Search results",
		Columns: []column[operator.SearchResult]{
			{Title: "Name", Cell: func(r *operator.SearchResult) cell {
				if r.Name != "" {
					return textCell(r.Name, r.ID)
				}
				return textCell(r.ID)
			}},
			{Title: "Kind", Value: func(r *operator.SearchResult) any { return title(kindOf(r)) }},
			{Title: "Team", Value: func(r *operator.SearchResult) any { return r.Team }},
			{Title: "Details", Value: func(r *operator.SearchResult) any { return r.Detail }},
		},
		Path:  func(r *operator.SearchResult) string { return resultLink(v, r) },
		Empty: none,
	})
}

// kindOf returns the console's name for the kind of a result.
func kindOf(r *operator.SearchResult) string {
	if r.Kind == operator.FoundDecision {
		return "request"
	}
	return r.Kind
}

// resultLink returns the address of a result's page.
func resultLink(v *visit, r *operator.SearchResult) string {
	if r.Kind == operator.FoundTeam {
		return v.Link("cost", "team", r.ID, "by", "resource")
	}
	page := map[string]string{operator.FoundResource: "resources/", operator.FoundDecision: "requests/", operator.FoundKey: "keys/"}[r.Kind]
	return v.Link(cmp.Or(page, "policies/") + url.PathEscape(r.ID))
}

// sortByWaste sorts idle resources: snoozed resources last, then by descending waste.
func sortByWaste(list []money.IdleResource) {
	rank := func(r *money.IdleResource) int {
		if r.SnoozedUntil != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b money.IdleResource) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(decimal(b.PerMonth), decimal(a.PerMonth)), cmp.Compare(a.ID, b.ID))
	})
}
