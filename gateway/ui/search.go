package ui

import (
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// searchRow finds everything that has an ID or a name.
const searchRow = "GET /admin/search"

// searchPage returns the page of results of the search in the top bar.
func searchPage() *page {
	return &page{name: "search", title: "Search", asks: searchRow, load: search}
}

func search(v *visit) (any, int, string) {
	text := strings.TrimSpace(v.Query("q"))
	if text == "" {
		return resultList(v, &operator.SearchResults{}), 0, ""
	}
	found := ask[operator.SearchResults](v, searchRow, url.Values{"q": {text}, "limit": {"100"}})
	return resultList(v, &found.Is), found.Status, found.Fault
}

// resultList lists the matches of a search.
func resultList(v *visit, found *operator.SearchResults) (l listing) {
	l.About.Title = "Search"
	if text := v.Query("q"); text != "" {
		l.About.Title, l.About.Text = "Results for “"+text+"”", plural(found.All, "match")
		if found.All != 1 {
			l.About.Text = count(int64(found.All)) + " matches"
		}
	}
	for _, unknown := range found.Unknown {
		l.Notes = append(l.Notes, note{levelWarn, "Not searched: " + unknown})
	}
	l.Table = newTable(v, found.Results, tableSpec[operator.SearchResult]{
		Name: "results", Caption: "Matches, best first", Path: func(r *operator.SearchResult) string { return resultPath(v, r) },
		Columns: []column[operator.SearchResult]{
			{Title: "Name", Cell: func(r *operator.SearchResult) cell { return foundCell(r) }},
			{Title: "Kind", Cell: func(r *operator.SearchResult) cell { return textCell(title(shownKind(r.Kind))) }},
			{Title: "Team", Cell: func(r *operator.SearchResult) cell { return textCell(r.Team) }},
			{Title: "Details", Cell: func(r *operator.SearchResult) cell { return textCell(r.Detail) }},
		},
		Empty: empty{Icon: "search", Title: "No matches", Text: "Search finds resources, keys, teams and policies by a part of their ID or name, and requests by their whole ID."},
	})
	return l
}

// shownKind returns the console's word for a kind of match.
func shownKind(kind string) string {
	if kind == operator.FoundDecision {
		return "request"
	}
	return kind
}

func foundCell(r *operator.SearchResult) cell {
	if r.Name != "" && r.Name != r.ID {
		return textCell(r.Name, r.ID)
	}
	return textCell(r.ID)
}

// resultPath returns the page of a match.
func resultPath(v *visit, r *operator.SearchResult) string {
	id := url.PathEscape(r.ID)
	switch r.Kind {
	case operator.FoundKey:
		return v.Link("keys/" + id)
	case operator.FoundTeam:
		return v.Link("cost", "team", r.ID, "by", "key")
	case operator.FoundDecision:
		return v.Link("requests/" + id)
	case operator.FoundPolicy:
		return v.Link("policies/" + id)
	}
	return v.Link("resources/" + id)
}
