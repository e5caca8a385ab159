// Package schedule says when schedules have ticks. It is pure: it has no clock, and knows
// nothing of jobs or databases.
//
// A time of day in a zone with daylight saving time is an instant once a day, but on two
// days a year. Ticks of a cron text are made instants as cron of most Linux systems
// (cronie) does it:
//
//   - If the hour is a fixed one (a number, a list or a range), then a time of day that is
//     skipped in spring has its tick when the gap ends, once for all skipped times, and a
//     time that comes twice in autumn has its tick the first time.
//   - If the hour is a wildcard (* or */n), the ticks follow the clock on the wall as it is:
//     none in the gap, and ticks both times in autumn.
package schedule
