package coverage

// Compare is Of, of other rows.
var Compare = compare
