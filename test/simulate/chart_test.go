package simulate

import (
	"fmt"
	"html"
	"strings"
)

// chart draws three panels of bars, a bar for each strategy.
func chart(all []result) string {
	const bar, label, panel, top = 22, 230, 170, 34
	height := top + len(all)*bar + 10
	far := len(all[0].regions) - 1
	panels := []struct {
		title string
		of    func(*result) float64
		show  func(float64) string
	}{
		{"under-admitted", (*result).lost, percent},
		{"waits, " + all[0].regions[far].name, func(r *result) float64 { return r.regions[far].waited }, percent},
		{"Redis calls per call", (*result).perCall, func(v float64) string { return fmt.Sprintf("%.2f", v) }},
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		label+len(panels)*panel, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	for i, r := range all {
		text(&b, label-8, top+i*bar+15, "end", r.name)
	}
	for p, panelOf := range panels {
		x := label + p*panel
		text(&b, x, 20, "start", panelOf.title)
		most := 0.0
		for i := range all {
			most = max(most, panelOf.of(&all[i]))
		}
		for i := range all {
			v := panelOf.of(&all[i])
			width := 0
			if most > 0 {
				width = int(max(0, v) / most * (panel - 60))
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#4677b0"/>`+"\n", x, top+i*bar+2, width+1, bar-6)
			text(&b, x+width+6, top+i*bar+15, "start", panelOf.show(v))
		}
	}
	return b.String() + "</svg>\n"
}

func text(b *strings.Builder, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
