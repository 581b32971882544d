"""The three mrjob jobs; installed as cdxmill.jobs."""
