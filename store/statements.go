package store

import "embed"

//go:embed sql/*.sql
var files embed.FS

// The statements, named after their files.
var (
	submitSQL         = statement("submit")
	submitUnkeyedSQL  = statement("submit_unkeyed")
	knownSQL          = statement("known")
	submittedSQL      = statement("submitted")
	commitFastSQL     = statement("commit_fast")
	barrierSQL        = statement("barrier")
	atWorkSQL         = statement("at_work")
	claimSQL          = statement("claim")
	lookBehindSQL     = statement("look_behind")
	renewSQL          = statement("renew")
	succeedSQL        = statement("succeed")
	retrySQL          = statement("retry")
	burySQL           = statement("bury")
	giveBackSQL       = statement("give_back")
	confirmCancelSQL  = statement("confirm_cancel")
	fateSQL           = statement("fate")
	noteSQL           = statement("note")
	keepLogsSQL       = statement("keep_logs")
	reapSQL           = statement("reap")
	promoteSQL        = statement("promote")
	nextDueSQL        = statement("next_due")
	cancelSQL         = statement("cancel")
	holdSQL           = statement("hold")
	releaseSQL        = statement("release")
	requeueSQL        = statement("requeue")
	redriveSQL        = statement("redrive")
	getSQL            = statement("get")
	endedSQL          = statement("ended")
	detailSQL         = statement("detail")
	attemptsSQL       = statement("attempts")
	logsSQL           = statement("logs")
	deadLettersSQL    = statement("dead_letters")
	declareTypesSQL   = statement("declare_types")
	typesSQL          = statement("types")
	ownTypesSQL       = statement("own_types")
	typeOwnersSQL     = statement("type_owners")
	enlistSQL         = statement("enlist")
	describeWorkerSQL = statement("describe_worker")
	dischargeSQL      = statement("discharge")
	workersSQL        = statement("workers")
	queuesSQL         = statement("queues")
	neighboursSQL     = statement("neighbours")
	unservedSQL       = statement("unserved")
	auditSQL          = statement("audit")
	sendHintSQL       = statement("send_hint")
	disownSQL         = statement("disown")

	foldTalliesSQL     = statement("fold_tallies")
	ageTalliesSQL      = statement("age_tallies")
	forgetTalliesSQL   = statement("forget_tallies")
	metricsOpenSQL     = statement("metrics_open")
	metricsFinalSQL    = statement("metrics_final")
	metricsRunningSQL  = statement("metrics_running")
	metricsWorkersSQL  = statement("metrics_workers")
	metricsAttemptsSQL = statement("metrics_attempts")
	metricsRecentSQL   = statement("metrics_recent")
	metricsTypesSQL    = statement("metrics_types")
	metricsSnapshotSQL = statement("metrics_snapshot")

	doctorLeasesSQL     = statement("doctor_leases")
	doctorSilentSQL     = statement("doctor_silent")
	doctorUnservedSQL   = statement("doctor_unserved")
	doctorSchemaSQL     = statement("doctor_schema")
	doctorPartsSQL      = statement("doctor_parts")
	doctorStatisticsSQL = statement("doctor_statistics")
	doctorSnapshotsSQL  = statement("doctor_snapshots")
	doctorSettingsSQL   = statement("doctor_settings")

	readOnlySQL = statement("read_only")
)

// statementNames are those of the statements, by their text, and of what the driver
// sends by itself.
var statementNames = map[string]string{"begin": "begin", "commit": "commit", "rollback": "rollback"}

func statement(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("store: " + err.Error()) // a build without the file cannot work at all
	}
	statementNames[string(text)] = name
	return string(text)
}
