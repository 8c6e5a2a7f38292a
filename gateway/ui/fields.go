package ui

import (
	"net/url"
	"slices"
	"strings"
)

// form changes something or filters the page: template "form".
type form struct {
	// Post is the address that the form is submitted to. If empty, the form is sent to Path by GET.
	Post, Path string
	Hidden     []hiddenField
	Fields     []field
	Button     string
	Icon       string
	// Main marks the primary form of the page, and Danger a form with an irreversible action.
	Main, Danger bool
	// Deny is the address of a second button, which denies an approval request. It may be empty.
	Deny string
	// Subject completes the button's name for screen readers if a page has several forms with the same button.
	Subject string
	// Open reports that the submission of the form failed.
	Open bool
}

// field is a labelled input: template "field".
type field struct {
	Name, Label string
	// Type is the type of an input, or "select", "checkbox", "checks" or "textarea". If empty, the field is a single line of text.
	Type, Value, Placeholder string
	// Hint is a description below the field.
	Hint string
	// Options are the options of a select or of a group of checkboxes.
	Options  []option
	Required bool
	// Wide extends the field to the end of the line.
	Wide bool
	// Max is the maximum length of the value, or 0 for no limit. Rows is the height of a textarea.
	Max, Rows int
	// Suggest lists suggested values.
	Suggest []string
	// ID is the id attribute of the input, and Problem the reason why its value was rejected, or "". Forms set them.
	ID, Problem string
}

// maxSuggested is the maximum number of suggested values of a field.
const maxSuggested = 100

// suggest adds values to the suggestions. It omits empty values and duplicates.
func (f *field) suggest(values ...string) {
	for _, value := range values {
		if value != "" && len(f.Suggest) < maxSuggested && !slices.Contains(f.Suggest, value) {
			f.Suggest = append(f.Suggest, value)
		}
	}
}

// option is one value of a select or a group of checkboxes.
type option struct {
	Value, Title string
	Chosen       bool
}

// Numeric reports whether phones should show a numeric keyboard for the field.
func (f field) Numeric() bool { return f.Type == "number" }

// nameFields returns the field for the name of an anonymous principal, which is recorded with its action. It holds the last name that was
// entered in this browser. Other principals have a name.
func (v *visit) nameFields() []field {
	if !v.scope.Anonymous {
		return nil
	}
	last, _ := v.cookie(v.r, nameCookie)
	last, _ = url.QueryUnescape(last) // an invalid value is shown as no name
	return []field{{Name: "by", Label: "Your name", Value: last, Required: true, Max: maxName}}
}

// maxName is the maximum length of the name of an anonymous principal.
const maxName = 100

// options returns an option for each value. The title of an option equals its value.
func options(values []string, chosen ...string) (out []option) {
	for _, value := range values {
		out = append(out, option{value, title(value), slices.Contains(chosen, value)})
	}
	return out
}

// names returns an option for each value, preceded by the option all, which has an empty value.
func names(all string, values []string, chosen string) []option {
	out := []option{{"", all, chosen == ""}}
	for _, value := range values {
		out = append(out, option{value, value, value == chosen})
	}
	return out
}

// post returns the form for an action, such as "keys/revoke", on the subject with the given ID, which may be empty. The form returns to
// this page. After a failed submission, the fields hold the submitted values.
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
			x.Value, x.Problem = v.typed.Get(x.Name), problemAt(v.failure, x.Name)
			for i := range x.Options {
				x.Options[i].Chosen = slices.Contains(v.typed[x.Name], x.Options[i].Value)
			}
		}
		f.Fields = append(f.Fields, x)
	}
	return f
}

// problemAt returns the part of an error that begins with the path of a field, or "".
func problemAt(failure, name string) string {
	path := strings.Replace(name, "limit.", "limits.", 1) + ": "
	for text := range strings.SplitSeq(failure, "; ") {
		if problem, ok := strings.CutPrefix(text, path); ok {
			return upper(problem)
		}
	}
	return ""
}

// fieldID returns the id attribute of an input. It is unique across the forms of a page.
func fieldID(action, id, name string) string {
	return idOf(action + " " + id)[:8] + "-" + name
}

// filters returns the form that filters the page. The fields take their values from the address. Other parameters are kept, except for the
// position in the list.
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

// chips returns the active filters of a form, with links that remove them.
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
