-- Stands for the private table: one row for each person.
select case when person % 3 = 0 then 'yes' else 'no' end as vote from range(300) as people(person)
