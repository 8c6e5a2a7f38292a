package ui

import (
	"slices"
)

// form is a form that changes something, or that filters a page: template "form".
type form struct {
	// Post is where the form is sent. A form without it is sent to Path by GET.
	Post, Path string
	Hidden     []hiddenField
	Fields     []field
	Button     string
	Icon       string
	// Main marks the form of the page, Danger one that cannot be undone.
	Main, Danger bool
	// Subject completes the name of the button for screen readers, where a page has several.
	Subject string
	// Open says that the form was sent and has failed.
	Open bool
}

// field is a labelled input: template "field".
type field struct {
	Name, Label string
	// Type is that of an input, or "select", "checkbox", "checks", "textarea"; empty is a line of text.
	Type, Value, Placeholder string
	// Hint explains the field, under it.
	Hint string
	// Options are those of a select or of several checkboxes.
	Options  []option
	Required bool
	// Wide gives the field the rest of the line.
	Wide bool
	// Max is the greatest length, 0 for none; Rows the height of a text.
	Max, Rows int
	// Suggest lists texts to choose from.
	Suggest []string
	// ID is that of the input. Forms set it.
	ID string
}

// option is an option of a field.
type option struct {
	Value, Title string
	Chosen       bool
}

// Numeric reports whether phones show digits for the field.
func (f field) Numeric() bool { return f.Type == "number" }

// options returns options with the same titles as values.
func options(values []string, chosen ...string) (out []option) {
	for _, value := range values {
		out = append(out, option{value, title(value), slices.Contains(chosen, value)})
	}
	return out
}

// names returns options whose titles are their values, after one for all.
func names(all string, values []string, chosen string) []option {
	out := []option{{"", all, chosen == ""}}
	for _, value := range values {
		out = append(out, option{value, value, value == chosen})
	}
	return out
}

// post returns a form of an action, such as "keys/revoke", about something with an ID, "" for none. The form comes back to this page. If
// the page shows the form again because it has failed, the fields have what was typed.
func (v *visit) post(action, id, submit string, fields ...field) form {
	f := form{Post: v.path + action, Button: submit, Subject: id, Open: v.Failed(action, id)}
	if v.rows != nil {
		f.Hidden = append(f.Hidden, hiddenField{"org", v.org})
	}
	f.Hidden = append(f.Hidden, hiddenField{"back", v.Here()})
	if id != "" {
		f.Hidden = append(f.Hidden, hiddenField{"id", id})
	}
	for _, x := range fields {
		x.ID = fieldID(action, id, x.Name)
		if f.Open {
			x.Value = v.typed.Get(x.Name)
			for i := range x.Options {
				x.Options[i].Chosen = slices.Contains(v.typed[x.Name], x.Options[i].Value)
			}
		}
		f.Fields = append(f.Fields, x)
	}
	return f
}

// fieldID returns the id of an input. Those of two forms on a page differ.
func fieldID(action, id, name string) string {
	return idOf(action + " " + id)[:8] + "-" + name
}

// filters returns the form that filters the page. The fields have the values of the address; other parameters stay, but for the place in
// the list.
func (v *visit) filters(fields ...field) form {
	f := form{Path: v.Path(), Button: "Apply"}
	without := []string{"cursor", "page", "before"}
	for i := range fields {
		x := &fields[i]
		x.ID, x.Value = x.Name, v.Query(x.Name)
		for j := range x.Options {
			x.Options[j].Chosen = x.Options[j].Value == x.Value
		}
		without = append(without, x.Name)
	}
	f.Fields, f.Hidden = fields, v.Kept(without...)
	return f
}

// chips returns the filters of a form that are set, with links that remove them.
func (v *visit) chips(f form) (out []chip) {
	for i := range f.Fields {
		x := &f.Fields[i]
		if x.Value == "" {
			continue
		}
		shown := x.Value
		for _, o := range x.Options {
			if o.Chosen {
				shown = o.Title
			}
		}
		if x.Type == "checkbox" {
			shown = ""
		}
		out = append(out, chip{x.Label, shown, v.With(x.Name, "", "cursor", "", "page", "", "before", "")})
	}
	return out
}
