// Package strictyaml reads configuration written by people: YAML decoded into Go structs with every fault reported at once, each
// with its file, line, column and full path.
//
// # What is strict about it
//
// The accepted language is YAML 1.2 (core schema) without parts that a configuration file has no use for or that two YAML readers
// read differently: no anchors, aliases, merge keys, tags, directives, complex keys or second documents; no keys that are not strings; no
// duplicate keys; no numbers such as 0777 or 1_000; no string over several lines without quotes or a block sign; no byte order mark, control or bidirectional formatting character; at most
// [MaxSize] bytes and [MaxDepth] levels. A key no struct field is named after is a fault and gets a suggestion. A value of another
// type than the field's is a fault: nothing is converted, a port written "80" is a string. A key without a value, or with null, is a
// fault everywhere but in a field of type any, since an allow-list left empty by mistake must not pass for one.
//
// # Types
//
// A field takes part by its yaml tag, `yaml:"name"`; `yaml:"name,required"` must be there; `yaml:"-"` is left out; `yaml:",inline"`
// puts a struct's keys beside its neighbours'. Exported fields without a tag, and types that cannot be decoded, are programming
// faults: [Decode] panics on them. Fields may be of these types:
//
//   - bool, every int, uint and float kind (range-checked, finite), string;
//   - [time.Duration], written "1m30s", never negative;
//   - [Secret], a reference to a value that is kept elsewhere;
//   - a string type with a Values() []string method, an enumeration;
//   - a type implementing [encoding.TextUnmarshaler], from strings, or [NumberUnmarshaler], from plain numbers as written;
//   - structs, pointers to and slices of these, and maps to these from string keys;
//   - any, which holds map[string]any, []any, string, bool, int64, float64 or nil.
//
// Defaults are the values that the decoded-into value already holds: a struct keeps the fields the file does not name, a list or a map in the
// file replaces the whole default. Elements of lists and maps start as zero; [Fill] gives them other defaults.
//
// # After decoding
//
// [Load] also returns the [Positions] of everything in the file, so that a later Validate can report paths and have [Locate] add the
// lines. Packages that import nothing of ours return errors with a Path() string method; others use [At], [Join] and [PathError].
//
//	cfg := Default()
//	pos, err := strictyaml.Load("tollgate.yaml", data, &cfg)
//	if err == nil {
//		err = strictyaml.Locate(pos, cfg.Validate())
//	}
//	if err != nil {
//		return err // tollgate.yaml:12:5: orgs[0].keys[1].shaa256: unknown key (did you mean "sha256"?)
//	}
//
// [Schema] describes the same struct as a JSON Schema for editors.
package strictyaml
