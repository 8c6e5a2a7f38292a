package operator

// Compare is Of, of other rows.
var Compare = compare
