/*
 * A property is an assertion with a name. Spin prints the name if the property is violated, so
 * that a test can tell which one was: each name is a variable that is never set, and that hidden
 * keeps out of the states.
 */
#define MUST(property, holds) assert(property || (holds))
