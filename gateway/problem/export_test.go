package problem

// Meanings returns every kind with the line that docs/errors.md shows, in no order.
func Meanings() map[Kind]string {
	m := make(map[Kind]string, len(kinds))
	for k, r := range kinds {
		m[k] = r.meaning
	}
	return m
}
